#include "hapax/saga.h"

#include <exception>

namespace hapax {

Saga::Saga(Context& context) : context_(context), exceptions_(std::uncaught_exceptions()) {}

Saga::~Saga() {
  if (std::uncaught_exceptions() > exceptions_) context_.undo_later(std::move(steps_));
}

void Saga::undo_all() {
  context_.undo_later(std::exchange(steps_, {}));
  context_.undo_now();
}

}  // namespace hapax
