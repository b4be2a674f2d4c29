#include "settle.h"

#include <libpq-fe.h>

#include <memory>
#include <stdexcept>

namespace hapax::bench {

void settle(const std::string& store_url) {
  if (!store_url.starts_with("postgres")) return;
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(store_url.c_str()), &PQfinish);
  for (const char* statement : {"VACUUM ANALYZE", "CHECKPOINT"}) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), statement), &PQclear);
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) throw std::runtime_error(PQerrorMessage(connection.get()));
  }
}

}  // namespace hapax::bench
