// A task that exists if and only if the caller's own transaction commits: the order and its charge, or neither.
//
//   own_transaction [sqlite:FILE]        sqlite:own_transaction.db unless given
#include <hapax/hapax.h>
#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

using Connection = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

Connection open_connection(const std::string& path) {
  sqlite3* opened = nullptr;
  if (sqlite3_open(path.c_str(), &opened) != SQLITE_OK) throw std::runtime_error("cannot open " + path);
  sqlite3_busy_timeout(opened, 5000);
  return {opened, sqlite3_close};
}

void run(const Connection& db, const std::string& sql) {
  char* message = nullptr;
  if (sqlite3_exec(db.get(), sql.c_str(), nullptr, nullptr, &message) == SQLITE_OK) return;
  const std::string error = message ? message : "unknown";
  sqlite3_free(message);
  throw std::runtime_error(sql + ": " + error);
}

int main(int argc, char** argv) try {
  const std::string url = argc > 1 ? argv[1] : "sqlite:own_transaction.db";
  int charged = 0;
  auto app = hapax::open(url);
  app.task("charge_order", [&](int order) { charged += order; });

  const Connection db = open_connection(url.substr(url.find(':') + 1));
  run(db, "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)");

  run(db, "BEGIN IMMEDIATE");
  run(db, "INSERT INTO orders (id) VALUES (1)");
  const auto lost = app.submit_in(db.get(), "charge_order", 1, hapax::key("order-1"));
  run(db, "ROLLBACK");  // the customer went away

  run(db, "BEGIN IMMEDIATE");
  run(db, "INSERT INTO orders (id) VALUES (2)");
  const auto kept = app.submit_in(db.get(), "charge_order", 2, hapax::key("order-2"));
  run(db, "COMMIT");

  app.work({.threads = 1, .until_idle_for = 100ms});

  bool nothing_left = false;
  try {
    app.find(lost.id());
  } catch (const hapax::Error& error) {
    nothing_left = error.code() == "TaskNotFound";
  }
  std::cout << "order 1 was rolled back and its task with it; order 2 is " << kept.status() << "\n";
  const bool as_said = nothing_left && charged == 2 && kept.status() == "completed";
  return as_said ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
