// The shop's workflows: what becomes of an order, of a delivery, of a day.
#pragma once

#include "types.h"

namespace shop {

// Charges, reserves, waits for the warehouse, ships.
Shipped run_order(hapax::Context& ctx, const Order& order);

// Adds what a supplier has delivered to the stock.
void run_delivery(hapax::Context& ctx, const hapax::EventOf<Delivery>& event);

// Writes the report of the day.
void run_nightly(hapax::Context& ctx, const Night& night);

}  // namespace shop
