#include "routes.h"

#include <boost/json.hpp>
#include <optional>
#include <utility>

#include "tables.h"

namespace shop {

namespace {

struct Wanted {
  std::string sku;
  int quantity = 1;
  std::string note = "none";
};
BOOST_DESCRIBE_STRUCT(Wanted, (), (sku, quantity, note))

struct Cancellation {
  std::string reason;
};
BOOST_DESCRIBE_STRUCT(Cancellation, (), (reason))

struct Note {
  std::string note;
};
BOOST_DESCRIBE_STRUCT(Note, (), (note))

struct Shown {
  Order order;
  std::string state;
  std::string workflow;
  std::optional<std::string> packed_by;
};
BOOST_DESCRIBE_STRUCT(Shown, (), (order, state, workflow, packed_by))

// A CloudEvent, as far as the shop reads it.
struct Incoming {
  std::string id;
  std::string source;
  std::string type;
  boost::json::value data;
};
BOOST_DESCRIBE_STRUCT(Incoming, (), (id, source, type, data))

struct Taken {
  std::vector<std::string> started;
  std::vector<std::string> duplicates;
};
BOOST_DESCRIBE_STRUCT(Taken, (), (started, duplicates))

struct Said {
  std::string error;
  std::string message;
};
BOOST_DESCRIBE_STRUCT(Said, (), (error, message))

Answer refuse(unsigned status, const std::string& error, const std::string& message) {
  return {status, hapax::to_json(Said{error, message})};
}

Answer nothing_here() { return refuse(404, "NotFound", "there is nothing here"); }

// Errors of Hapax have the codes of its HTTP API.
Answer refuse(const hapax::Error& error) {
  if (error.safe_to_retry()) return refuse(503, error.code(), error.what());
  if (error.code() == "WorkflowNotFound") return refuse(404, error.code(), error.what());
  if (error.code() == "WorkflowClosed" || error.code() == "IdempotencyConflict") {
    return refuse(409, error.code(), error.what());
  }
  return refuse(400, error.code(), error.what());
}

bool same(const Order& a, const Order& b) { return a.sku == b.sku && a.quantity == b.quantity && a.note == b.note; }

}  // namespace

Routes::Routes(const hapax::App& app, std::string database)
    : app_(app), process_(app.workflow_named<Order, Shipped>(process_order.name())), database_(std::move(database)) {}

Answer Routes::respond(const Request& request) {
  try {
    return route(request);
  } catch (const hapax::Error& error) {
    return refuse(error);
  } catch (const std::exception& error) {
    return refuse(500, "Internal", error.what());
  }
}

Answer Routes::route(const Request& request) {
  const auto& path = request.path;
  if (path.size() >= 2 && path[0] == "orders") return route_order(request, path[1]);
  if (path.size() != 1) return nothing_here();
  if (request.method == "POST" && path[0] == "events") return take_event(request.body);
  if (request.method != "GET") return nothing_here();
  Database database(database_);
  if (path[0] == "products") return {200, hapax::to_json(products(database))};
  if (path[0] == "reports") return {200, hapax::to_json(reports(database))};
  return nothing_here();
}

Answer Routes::route_order(const Request& request, const std::string& id) {
  const std::string what = request.path.size() == 3 ? request.path[2] : "";
  if (request.path.size() == 2 && request.method == "PUT") return place(id, request.body);
  if (request.path.size() == 2 && request.method == "GET") return show(id);
  if (what == "why" && request.method == "GET") return {200, app_.why_json(workflow_id_of(id))};
  if (request.method != "POST" || (what != "packed" && what != "cancel" && what != "note")) return nothing_here();
  if (request.request_key.empty()) {
    return refuse(400, "IdempotencyKeyRequired", "send an Idempotency-Key: the same key again does nothing more");
  }
  if (what == "packed") return tell_packed(id, request);
  return what == "note" ? note(id, request) : cancel(id, request);
}

// The row and its workflow, or neither. A client that lost the answer sends the same again.
Answer Routes::place(const std::string& id, const std::string& body) {
  const auto wanted = hapax::from_json<Wanted>(body);
  if (wanted.quantity < 1) return refuse(400, "InvalidRequest", "/quantity: at least 1");
  Database database(database_);
  Transaction transaction(database);
  const auto product = find_product(database, wanted.sku);
  if (!product) return refuse(422, "UnknownProduct", "there is no product '" + wanted.sku + "'");

  const Order order{id, wanted.sku, wanted.quantity, product->cents * wanted.quantity, wanted.note};
  const bool is_new = add_order(database, order);
  if (is_new) {
    process_.start_in(database.get(), workflow_id_of(id), order);
  } else if (!same(find_order(database, id)->order, order)) {
    return refuse(409, "OrderExists", "order '" + id + "' is another one");
  }
  transaction.commit();
  return {is_new ? 201U : 200U, hapax::to_json(find_order(database, id)->order)};
}

Answer Routes::show(const std::string& id) {
  Database database(database_);
  const auto row = find_order(database, id);
  if (!row) return nothing_here();
  const auto run = process_.find(workflow_id_of(id));
  return {200, hapax::to_json(Shown{row->order, row->state, run.status(), run.value<std::string>("packed_by")})};
}

Answer Routes::tell_packed(const std::string& id, const Request& request) {
  const auto by = hapax::from_json<Packed>(request.body);
  process_.find(workflow_id_of(id)).signal(packed, by, hapax::request(request.request_key));
  return {202, "{}"};
}

Answer Routes::note(const std::string& id, const Request& request) {
  const auto wanted = hapax::from_json<Note>(request.body);
  const hapax::RequestKey request_key = hapax::request(request.request_key);
  const std::string before = process_.find(workflow_id_of(id)).update(change_note, wanted.note, request_key);
  return {200, hapax::to_json(Note{before})};
}

Answer Routes::cancel(const std::string& id, const Request& request) {
  const auto why = hapax::from_json<Cancellation>(request.body);
  process_.find(workflow_id_of(id)).request_cancel(why.reason, hapax::request(request.request_key));
  return {202, "{}"};
}

// The same id again starts nothing and is an answer like the first; another event under it is a conflict.
Answer Routes::take_event(const std::string& body) {
  const auto event = hapax::from_json<Incoming>(body);
  const hapax::Published published =
      app_.publish({.id = event.id, .source = event.source, .type = event.type, .data = hapax::to_json(event.data)});
  return {202, hapax::to_json(Taken{published.started, published.duplicates})};
}

}  // namespace shop
