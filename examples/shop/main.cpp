// The shop: a web service and its workers in one process, on one file.
//
//   shop [FILE] [PORT] [PARTNERS]      shop.db, 8080 and partners.txt unless given; port 0: any that is free
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "handlers.h"
#include "http.h"
#include "routes.h"
#include "tables.h"

using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  const std::string file = argc > 1 ? argv[1] : "shop.db";
  const int port = argc > 2 ? std::atoi(argv[2]) : 8080;
  shop::Partners partners(argc > 3 ? argv[3] : "partners.txt");

  auto app = hapax::open("sqlite:" + file);
  shop::Database database(file);
  shop::create_tables(database);
  app.configure_queue("payments", {.retention = 24h * 90, .rate_limit = "100/sec"});
  shop::declare(app, file, partners);

  shop::Routes routes(app, file);
  const shop::HttpServer server(static_cast<unsigned short>(port), 4,
                                [&](const shop::Request& request) { return routes.respond(request); });
  std::cout << "the shop is open: http://127.0.0.1:" << server.port() << std::endl;

  app.work({.threads = 4, .lease = 2s});  // until SIGTERM or SIGINT; then it finishes what runs
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::cerr << "shop: " << error.what() << "\n";
  return EXIT_FAILURE;
}
