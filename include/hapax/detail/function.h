// From a plain function to a handler. Nothing here is for callers.
#pragma once

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>

#include "hapax/json.h"
#include "hapax/task.h"

namespace hapax::detail {

// JSON in, JSON out ("" for nothing); throws what the function throws.
using Handler = std::function<std::string(TaskContext&, const std::string& input_json)>;

template <class T>
struct Signature;
template <class R, class... P>
struct Signature<R (*)(P...)> {
  using Result = R;
  using Parameters = std::tuple<P...>;
};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...)> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const noexcept> : Signature<R (*)(P...)> {};
template <class F>
  requires requires { &F::operator(); }
struct Signature<F> : Signature<decltype(&F::operator())> {};

template <class F>
concept HasSignature = requires { typename Signature<F>::Parameters; };

template <class P>
inline constexpr bool is_context = std::is_same_v<P, TaskContext&>;

template <class P>
inline constexpr bool is_input = !is_context<P> && !std::is_same_v<std::remove_cvref_t<P>, TaskContext> &&
                                 (!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>);

// The shapes a task may have.
template <class Parameters>
struct Shape {
  static constexpr bool good = false;
};
template <>
struct Shape<std::tuple<>> {
  static constexpr bool good = true, context = false, input = false;
};
template <class P>
struct Shape<std::tuple<P>> {
  static constexpr bool good = is_context<P> || is_input<P>, context = is_context<P>, input = is_input<P>;
  using Input = std::remove_cvref_t<P>;
};
template <class C, class P>
struct Shape<std::tuple<C, P>> {
  static constexpr bool good = is_context<C> && is_input<P>, context = true, input = true;
  using Input = std::remove_cvref_t<P>;
};

template <class F, class ShapeOf>
decltype(auto) call(F& function, TaskContext& context, const std::string& input_json) {
  if constexpr (ShapeOf::input && ShapeOf::context) {
    return function(context, read<typename ShapeOf::Input>(input_json));
  } else if constexpr (ShapeOf::input) {
    return function(read<typename ShapeOf::Input>(input_json));
  } else if constexpr (ShapeOf::context) {
    return function(context);
  } else {
    return function();
  }
}

template <class F>
Handler handler_of(F function) {
  static_assert(HasSignature<F>,
                "hapax: a task must be a function, or a callable with one operator() that is not a template (no auto "
                "parameters), so that its input type is known");
  if constexpr (HasSignature<F>) {
    using ShapeOf = Shape<typename Signature<F>::Parameters>;
    static_assert(ShapeOf::good,
                  "hapax: a task takes nothing, its input, a hapax::TaskContext&, or a hapax::TaskContext& and then its "
                  "input. The input is taken by value or by const reference");
    if constexpr (ShapeOf::good) {
      return [function = std::move(function)](TaskContext& context, const std::string& input_json) mutable {
        if constexpr (std::is_void_v<typename Signature<F>::Result>) {
          call<F, ShapeOf>(function, context, input_json);
          return std::string();
        } else {
          return write(call<F, ShapeOf>(function, context, input_json));
        }
      };
    }
  }
}

template <class F>
const void* address_of(const F& function) {
  if constexpr (std::is_pointer_v<F>) {
    return reinterpret_cast<const void*>(function);
  } else {
    return nullptr;
  }
}

// What is submitted must be what the function takes.
template <class Input, class... Parameters>
constexpr void check_input() {
  using ShapeOf = Shape<std::tuple<Parameters...>>;
  static_assert(ShapeOf::good && ShapeOf::input, "hapax: this function takes no input; submit it by its name");
  if constexpr (ShapeOf::good && ShapeOf::input) {
    static_assert(std::is_convertible_v<const Input&, typename ShapeOf::Input>,
                  "hapax: the input that is submitted is not what the task's function takes");
  }
}

}  // namespace hapax::detail
