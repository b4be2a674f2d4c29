// A name with several addresses: one that does not answer leaves the others their share of the time.
#include "store/postgres/connection/addresses.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "store/postgres/connection/connection.h"
#include "store/postgres/connection/url.h"
#include "support/postgres_server.h"

namespace hapax::postgres {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;

Resolve always(std::vector<std::string> addresses) {
  return [=](const std::string&) { return addresses; };
}

// Takes connections on an address of this machine, and says nothing.
class SilentServer {
 public:
  SilentServer(const char* address, std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    inet_pton(AF_INET, address, &where.sin_addr);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
  }
  ~SilentServer() { ::close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

 private:
  const int socket_;
};

TEST(Addresses, AreThoseOfTheName) {
  EXPECT_THAT(addresses_of("127.0.0.1"), ElementsAre("127.0.0.1"));
  EXPECT_THAT(addresses_of("localhost"), Contains(testing::AnyOf("127.0.0.1", "::1")));
  EXPECT_THAT(addresses_of("nobody.invalid"), testing::IsEmpty());
}

TEST(Addresses, StandBesideTheName) {
  EXPECT_THAT(by_address("host='db' port='5'", always({"10.0.0.1", "fd00::2"})),
              ElementsAre("host='db' port='5' hostaddr='10.0.0.1'", "host='db' port='5' hostaddr='fd00::2'"));
}

TEST(Addresses, AreNotLookedUpWhereNoneAreNeeded) {
  const Resolve never = [](const std::string& name) {
    ADD_FAILURE() << name;
    return std::vector<std::string>();
  };
  for (const char* host : {"dbname='d'", "host='/run/postgresql'", "host='db' hostaddr='10.0.0.1'"}) {
    EXPECT_THAT(by_address(host, never), ElementsAre(host));
  }
  EXPECT_THAT(by_address("host='db'", always({})), ElementsAre("host='db'")) << "libpq says what is wrong with it";
}

TEST(Addresses, OneThatDoesNotAnswerLeavesTimeForTheNext) {
  PostgresServer& server = PostgresServer::shared();
  const std::string database = server.create_database();
  const SilentServer silent("127.0.0.2", server.port());
  ConnectionOptions options;
  options.hosts = parse_url("postgres://postgres@db.invalid:" + std::to_string(server.port()) +
                            database.substr(database.rfind('/')))
                      .hosts;
  options.resolve = always({"127.0.0.2", "127.0.0.1"});
  {
    const CallDeadline deadline(2s);
    const Connection connection(options);
    EXPECT_STREQ(PQhost(connection.handle()), "db.invalid") << "certificates are checked against the name";
    EXPECT_STREQ(PQhostaddr(connection.handle()), "127.0.0.1");
  }
  server.drop_database(database);
}

}  // namespace
}  // namespace hapax::postgres
