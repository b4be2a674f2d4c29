// From a function to the handler of an update. Nothing here is for callers.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "hapax/detail/function.h"
#include "hapax/detail/std_function.h"
#include "hapax/json.h"

namespace hapax::detail {

// JSON in, JSON out.
template <class F>
std::function<std::string(const std::string&)> update_handler_of(F function) {
  static_assert(HasSignature<F>, "hapax: a handler of updates is a function, or a callable with one operator()");
  using Parameters = typename Signature<F>::Parameters;
  using Result = typename Signature<F>::Result;
  static_assert(std::tuple_size_v<Parameters> <= 1, "hapax: a handler of updates takes the question, or nothing");
  return [function = std::move(function)](const std::string& question_json) mutable -> std::string {
    const auto call = [&]() -> Result {
      if constexpr (std::tuple_size_v<Parameters> == 0) {
        return function();
      } else {
        return function(read<Plain<std::tuple_element_t<0, Parameters>>>(question_json));
      }
    };
    if constexpr (std::is_void_v<Result>) {
      call();
      return {};
    } else {
      return write(call());
    }
  };
}

}  // namespace hapax::detail
