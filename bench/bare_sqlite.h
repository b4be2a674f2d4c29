// The yardstick: bare loops over SQLite's C API, on the same file layout (the same columns and indexes) as the store,
// without its checks. They show what SQLite and the disk can do on this machine at this moment.
#pragma once

#include <cstdint>
#include <string>

namespace hapax::bench {

// The file must exist with the store's schema. Rows per second of durable inserts with a unique key.
double bare_keyed_inserts(const std::string& path, std::int64_t rows, std::int64_t batch);

// Claims and completes all pending rows in batches, two transactions for each batch. Rows per second.
double bare_claim_complete(const std::string& path, std::int64_t batch);

// Adds closed executions in bulk.
void fill_with_closed(const std::string& path, std::int64_t rows);

}  // namespace hapax::bench
