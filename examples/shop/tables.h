// The shop's tables: products, orders, reports. Each function is one statement, in the caller's transaction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "database.h"
#include "types.h"

namespace shop {

struct Product {
  std::string sku;
  std::int64_t cents = 0;
  std::int64_t stock = 0;
};
BOOST_DESCRIBE_STRUCT(Product, (), (sku, cents, stock))

struct OrderRow {
  Order order;
  std::string state;  // "new", "paid", "shipped", "given up"
};

struct Report {
  std::string day;
  std::int64_t orders = 0;
  std::int64_t shipped = 0;
  std::int64_t cents = 0;  // of what was shipped
};
BOOST_DESCRIBE_STRUCT(Report, (), (day, orders, shipped, cents))

void create_tables(Database& database);  // with two products, if there are none

std::vector<Product> products(Database& database);
std::optional<Product> find_product(Database& database, const std::string& sku);
void add_stock(Database& database, const std::string& sku, int quantity);
bool reserve_stock(Database& database, const Order& order);  // false: there is not enough
void release_stock(Database& database, const std::string& order);

bool add_order(Database& database, const Order& order);  // false: there is one of that id
std::optional<OrderRow> find_order(Database& database, const std::string& id);
void change_state(Database& database, const std::string& id, const std::string& state);

Report make_report(Database& database, const std::string& day);
void save_report(Database& database, const Report& report);
std::vector<Report> reports(Database& database);

}  // namespace shop
