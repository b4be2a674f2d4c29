// The words of the shop: what is ordered, what its tasks take and return, what its workflow is told.
//
// Tasks are declared here by name and type, so that the workflow, the handlers, the routes and the tests share them
// without including each other.
#pragma once

#include <hapax/hapax.h>

#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace shop {

struct Order {
  std::string id;
  std::string sku;
  int quantity = 1;
  std::int64_t cents = 0;
  std::string note = "none";  // added later: orders that were waiting then have none
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, sku, quantity, cents, note))

// What becomes of an order, as its row says.
struct Change {
  std::string order;
  std::string state;
};
BOOST_DESCRIBE_STRUCT(Change, (), (order, state))

struct Shipped {
  std::string payment;
  std::string parcel;
  std::string note;
};
BOOST_DESCRIBE_STRUCT(Shipped, (), (payment, parcel, note))

inline const hapax::Task<Order, std::string> charge("charge");     // the payment
inline const hapax::Task<std::string, void> refund("refund");      // of an order's payment, if there is one
inline const hapax::Task<Order, void> reserve("reserve");          // in our stock
inline const hapax::Task<std::string, void> put_back("put_back");  // what an order has reserved, if anything
inline const hapax::Task<Order, std::string> ship("ship");         // the parcel
inline const hapax::Task<Change, void> set_state("set_state");     // of the order's row

inline const hapax::Workflow<Order, Shipped> process_order("process_order");

// What the warehouse says.
struct Packed {
  std::string by;
};
BOOST_DESCRIBE_STRUCT(Packed, (), (by))
inline constexpr hapax::Signal<Packed> packed{"packed"};

// What the customer may change until the order is packed; the answer is the note before.
inline constexpr hapax::Update<std::string, std::string> change_note{"change_note"};

// What the payment provider says, as an event: the customer wants the money back.
struct Dispute {
  std::string order;
  std::string reason;
};
BOOST_DESCRIBE_STRUCT(Dispute, (), (order, reason))
inline constexpr hapax::Signal<Dispute> disputed{"disputed"};

// What a supplier says, as an event: goods have arrived.
struct Delivery {
  std::string sku;
  int quantity = 0;
};
BOOST_DESCRIBE_STRUCT(Delivery, (), (sku, quantity))
inline const hapax::Task<Delivery, void> stock_up("stock_up");
inline const hapax::Workflow<hapax::EventOf<Delivery>, void> take_delivery("take_delivery");

// What the schedule says: the time that a run is for, or all those that one run stands for.
struct Window {
  std::string from, to;
  int missed = 0;
};
BOOST_DESCRIBE_STRUCT(Window, (), (from, to, missed))
struct Night {
  std::optional<std::string> scheduled_for;
  std::optional<Window> window;
};
BOOST_DESCRIBE_STRUCT(Night, (), (scheduled_for, window))
inline const hapax::Task<std::string, void> write_report("write_report");  // of that day
inline const hapax::Workflow<Night, void> nightly("nightly");

inline std::string workflow_id_of(const std::string& order) { return "order-" + order; }

}  // namespace shop
