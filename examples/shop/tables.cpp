#include "tables.h"

namespace shop {

void create_tables(Database& database) {
  database.run(R"sql(
    CREATE TABLE IF NOT EXISTS products (
      sku TEXT PRIMARY KEY, cents INTEGER NOT NULL, stock INTEGER NOT NULL CHECK (stock >= 0));
    CREATE TABLE IF NOT EXISTS orders (
      id TEXT PRIMARY KEY, sku TEXT NOT NULL, quantity INTEGER NOT NULL, cents INTEGER NOT NULL, note TEXT NOT NULL,
      state TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS reservations (order_id TEXT PRIMARY KEY, sku TEXT NOT NULL, quantity INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS hapax_effects (  -- of once_in(); as `hapax effects --sql sqlite` prints it
      effect_key TEXT PRIMARY KEY, result TEXT, created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
    CREATE TABLE IF NOT EXISTS reports (
      day TEXT PRIMARY KEY, orders INTEGER NOT NULL, shipped INTEGER NOT NULL, cents INTEGER NOT NULL);
    INSERT OR IGNORE INTO products (sku, cents, stock) VALUES ('lamp', 4900, 10), ('desk', 59900, 2);
  )sql");
}

std::vector<Product> products(Database& database) {
  std::vector<Product> found;
  for (Statement rows(database, "SELECT sku, cents, stock FROM products ORDER BY sku"); rows.next();) {
    found.push_back({rows.text(0), rows.number(1), rows.number(2)});
  }
  return found;
}

std::optional<Product> find_product(Database& database, const std::string& sku) {
  Statement rows(database, "SELECT sku, cents, stock FROM products WHERE sku = ?", {sku});
  if (!rows.next()) return std::nullopt;
  return Product{rows.text(0), rows.number(1), rows.number(2)};
}

void add_stock(Database& database, const std::string& sku, int quantity) {
  change(database, "UPDATE products SET stock = stock + ?2 WHERE sku = ?1", {sku, quantity});
}

bool reserve_stock(Database& database, const Order& order) {
  change(database, "INSERT INTO reservations (order_id, sku, quantity) VALUES (?, ?, ?)",
         {order.id, order.sku, order.quantity});
  return change(database, "UPDATE products SET stock = stock - ?2 WHERE sku = ?1 AND stock >= ?2",
                {order.sku, order.quantity}) == 1;
}

void release_stock(Database& database, const std::string& order) {
  change(database,
         "UPDATE products SET stock = stock + reservations.quantity FROM reservations "
         "WHERE reservations.order_id = ? AND products.sku = reservations.sku",
         {order});
  change(database, "DELETE FROM reservations WHERE order_id = ?", {order});
}

bool add_order(Database& database, const Order& order) {
  return change(database,
                "INSERT INTO orders (id, sku, quantity, cents, note, state) VALUES (?, ?, ?, ?, ?, 'new') "
                "ON CONFLICT DO NOTHING",
                {order.id, order.sku, order.quantity, order.cents, order.note}) == 1;
}

std::optional<OrderRow> find_order(Database& database, const std::string& id) {
  Statement rows(database, "SELECT id, sku, quantity, cents, note, state FROM orders WHERE id = ?", {id});
  if (!rows.next()) return std::nullopt;
  return OrderRow{{rows.text(0), rows.text(1), static_cast<int>(rows.number(2)), rows.number(3), rows.text(4)},
                  rows.text(5)};
}

void change_state(Database& database, const std::string& id, const std::string& state) {
  change(database, "UPDATE orders SET state = ?2 WHERE id = ?1", {id, state});
}

Report make_report(Database& database, const std::string& day) {
  Statement rows(database,
                 "SELECT count(*), count(*) FILTER (WHERE state = 'shipped'), "
                 "coalesce(sum(cents) FILTER (WHERE state = 'shipped'), 0) FROM orders");
  rows.next();
  return {day, rows.number(0), rows.number(1), rows.number(2)};
}

void save_report(Database& database, const Report& report) {
  change(database, "INSERT OR REPLACE INTO reports (day, orders, shipped, cents) VALUES (?, ?, ?, ?)",
         {report.day, report.orders, report.shipped, report.cents});
}

std::vector<Report> reports(Database& database) {
  std::vector<Report> found;
  for (Statement rows(database, "SELECT day, orders, shipped, cents FROM reports ORDER BY day DESC"); rows.next();) {
    found.push_back({rows.text(0), rows.number(1), rows.number(2), rows.number(3)});
  }
  return found;
}

}  // namespace shop
