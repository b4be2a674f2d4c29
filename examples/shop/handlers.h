// What the shop's workers do, and what starts by itself.
#pragma once

#include <string>

#include "partners.h"
#include "types.h"

namespace shop {

// Declares the shop's tasks, its workflow, its schedule and what it does for events. `database` is the path of the
// shop's own tables. `partners` must outlive the app.
void declare(hapax::App& app, const std::string& database, Partners& partners);

}  // namespace shop
