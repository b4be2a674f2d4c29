// Says in a sentence that the code of a workflow has overflown its stack, before the program ends of it.
//
// Below each stack lies a guard page. A fault there is told on standard error; then whoever handled such faults before
// gets it: the system, which ends the program.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace hapax::detail {

// While it lives, faults of this thread are told: it has a stack of its own for that.
class OverflowWatch {
 public:
  OverflowWatch();
  ~OverflowWatch();
  OverflowWatch(const OverflowWatch&) = delete;
  OverflowWatch& operator=(const OverflowWatch&) = delete;

 private:
  const std::unique_ptr<char[]> stack_;
};

// The fiber that this thread runs from now on: the lowest address of its stack, whose first page is the guard. Null:
// none.
void running_on_stack(const void* lowest, std::size_t bytes);
// And the workflow that it runs, which must outlive this.
void running_workflow(const std::string* type);

}  // namespace hapax::detail
