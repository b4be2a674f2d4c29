// Effects in the program's own database that happen once: a booking and its result, whatever dies in between.
//
//   effects [sqlite:FILE]        sqlite:effects.db unless given
//
// The handler fails after its commit, as if its worker had died there. The next attempt finds what was done.
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

void run(sqlite3* db, const std::string& sql) {
  char* message = nullptr;
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message) == SQLITE_OK) return;
  const std::string error = message ? message : "unknown";
  sqlite3_free(message);
  throw std::runtime_error(sql + ": " + error);
}

// Returns the number of the booking.
std::int64_t book(sqlite3* db, int order) {
  run(db, "INSERT INTO bookings (order_id) VALUES (" + std::to_string(order) + ")");
  return sqlite3_last_insert_rowid(db);
}

int main(int argc, char** argv) try {
  const std::string url = argc > 1 ? argv[1] : "sqlite:effects.db";
  auto app = hapax::open(url);
  const Connection db = open_connection(url.substr(url.find(':') + 1));
  run(db.get(), "CREATE TABLE IF NOT EXISTS bookings (id INTEGER PRIMARY KEY, order_id INTEGER)");
  // As `hapax effects --sql sqlite` prints it.
  run(db.get(),
      "CREATE TABLE IF NOT EXISTS hapax_effects (effect_key TEXT PRIMARY KEY, result TEXT,"
      " created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)");

  app.task("book_order",
           [&](hapax::TaskContext& context, int order) {
             run(db.get(), "BEGIN IMMEDIATE");
             const auto booking = context.once_in(db.get(), book, order);
             run(db.get(), "COMMIT");
             if (context.attempt() == 1) throw std::runtime_error("the worker dies here");
             return booking;
           },
           {.retry = {.initial = 1ms}});
  const auto handle = app.submit("book_order", 456, hapax::key("book-456"));
  app.work({.threads = 1, .until_idle_for = 100ms});

  std::cout << "booking " << handle.result<std::int64_t>() << ", after two attempts\n";
  std::int64_t bookings = 0;
  const auto count = [](void* out, int, char** values, char**) {
    *static_cast<std::int64_t*>(out) = std::stoll(values[0]);
    return 0;
  };
  sqlite3_exec(db.get(), "SELECT count(*) FROM bookings WHERE order_id = 456", count, &bookings, nullptr);
  return bookings == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
