// From a plain function to a handler, of tasks and of workflows. Nothing here is for callers.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>

#include "hapax/detail/std_function.h"
#include "hapax/json.h"
#include "hapax/task.h"

namespace hapax {
class Context;
}

namespace hapax::detail {

// JSON in, JSON out ("" for nothing); throws what the function throws.
using Handler = std::function<std::string(TaskContext&, const std::string& input_json)>;
using WorkflowFunction = std::function<std::string(Context&, const std::string& input_json)>;

// The result of a function, as a value.
template <class T>
using Plain = std::remove_cvref_t<T>;

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

template <class P>
inline constexpr bool is_context_like =
    std::is_same_v<std::remove_cvref_t<P>, TaskContext> || std::is_same_v<std::remove_cvref_t<P>, Context>;

template <class F>
concept HasSignature = !std::is_member_pointer_v<F> && requires { typename Signature<F>::Parameters; };

// What a task or a workflow of the function takes and returns; void: nothing.
template <class Parameters>
struct InputOf {
  using Type = void;
};
template <class P>
  requires(!is_context_like<P>)
struct InputOf<std::tuple<P>> {
  using Type = std::remove_cvref_t<P>;
};
template <class C, class P>
struct InputOf<std::tuple<C, P>> {
  using Type = std::remove_cvref_t<P>;
};
template <class F>
using FunctionInput = typename InputOf<typename Signature<F>::Parameters>::Type;
template <class F>
using FunctionResult = Plain<typename Signature<F>::Result>;

// Whether a function is one of a task or workflow of these types. What has no signature gets a sentence of its own.
template <class F, class Input, class Result>
constexpr bool fits() {
  if constexpr (HasSignature<F>) {
    return std::is_same_v<FunctionInput<F>, Input> && std::is_same_v<FunctionResult<F>, Result>;
  }
  return true;
}

// The first parameter is a workflow's context.
template <class Parameters>
inline constexpr bool takes_workflow_context = false;
template <class... Rest>
inline constexpr bool takes_workflow_context<std::tuple<Context&, Rest...>> = true;

template <class P>
inline constexpr bool is_context = std::is_same_v<P, TaskContext&> || std::is_same_v<P, Context&>;

template <class P>
inline constexpr bool is_input = !is_context<P> && !std::is_same_v<std::remove_cvref_t<P>, TaskContext> &&
                                 !std::is_same_v<std::remove_cvref_t<P>, Context> &&
                                 (!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>);

// The shapes a task may have; with Context for TaskContext, those of a workflow.
template <class Parameters, class ContextType = TaskContext>
struct Shape {
  static constexpr bool good = false;
};
template <class ContextType>
struct Shape<std::tuple<>, ContextType> {
  static constexpr bool good = true, context = false, input = false;
};
template <class P, class ContextType>
struct Shape<std::tuple<P>, ContextType> {
  static constexpr bool context = std::is_same_v<P, ContextType&>, input = is_input<P>, good = context || input;
  using Input = std::remove_cvref_t<P>;
};
template <class C, class P, class ContextType>
struct Shape<std::tuple<C, P>, ContextType> {
  static constexpr bool good = std::is_same_v<C, ContextType&> && is_input<P>, context = true, input = true;
  using Input = std::remove_cvref_t<P>;
};

template <class F, class ShapeOf, class ContextType>
decltype(auto) call(F& function, ContextType& context, const std::string& input_json) {
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

// JSON in, JSON out.
template <class F, class ShapeOf, class ContextType>
std::function<std::string(ContextType&, const std::string&)> in_json(F function) {
  return [function = std::move(function)](ContextType& context, const std::string& input_json) mutable {
    if constexpr (std::is_void_v<typename Signature<F>::Result>) {
      call<F, ShapeOf>(function, context, input_json);
      return std::string();
    } else {
      return write(call<F, ShapeOf>(function, context, input_json));
    }
  };
}

template <class F>
Handler handler_of(F function) {
  static_assert(!std::is_member_pointer_v<F>,
                "hapax: a member function needs its object: declare a lambda that calls it, such as "
                "[&shop](const Order& order) { return shop.charge(order); }");
  static_assert(HasSignature<F> || std::is_member_pointer_v<F>,
                "hapax: a task must be a function, or a callable with one operator() that is not a template (no auto "
                "parameters), so that its input type is known");
  if constexpr (HasSignature<F>) {
    using Parameters = typename Signature<F>::Parameters;
    using ShapeOf = Shape<Parameters>;
    static_assert(!takes_workflow_context<Parameters>,
                  "hapax: this is a workflow, because it takes a hapax::Context&: declare it with app.workflow()");
    static_assert(
        ShapeOf::good || takes_workflow_context<Parameters>,
        "hapax: a task takes nothing, its input, a hapax::TaskContext&, or a hapax::TaskContext& and then its "
        "input. The input is taken by value or by const reference");
    if constexpr (ShapeOf::good) return in_json<F, ShapeOf, TaskContext>(std::move(function));
  }
}

template <class F>
WorkflowFunction workflow_of(F function) {
  static_assert(!std::is_member_pointer_v<F>,
                "hapax: a member function needs its object: declare a lambda that calls it, such as "
                "[&shop](hapax::Context& ctx, const Order& order) { return shop.process(ctx, order); }");
  static_assert(
      HasSignature<F> || std::is_member_pointer_v<F>,
      "hapax: a workflow must be a function, or a callable with one operator() that is not a template (no auto "
      "parameters), so that its input type is known");
  if constexpr (HasSignature<F>) {
    using ShapeOf = Shape<typename Signature<F>::Parameters, Context>;
    static_assert(
        ShapeOf::good && ShapeOf::context,
        "hapax: a workflow takes a hapax::Context&, and then its input if it has one. The input is taken by value "
        "or by const reference");
    if constexpr (ShapeOf::good && ShapeOf::context) return in_json<F, ShapeOf, Context>(std::move(function));
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
  constexpr bool is_workflow = takes_workflow_context<std::tuple<Parameters...>>;
  static_assert(!is_workflow,
                "hapax: this is a workflow, because it takes a hapax::Context&: start it with app.start(function, "
                "workflow_id, input)");
  static_assert(is_workflow || (ShapeOf::good && ShapeOf::input),
                "hapax: this function takes no input; submit it by its name");
  if constexpr (ShapeOf::good && ShapeOf::input) {
    static_assert(std::is_convertible_v<const Input&, typename ShapeOf::Input>,
                  "hapax: the input that is submitted is not what the task's function takes");
  }
}

// The same for a step, or the start of a workflow: a function without parameters gets no input there.
template <class Input, class ShapeOf>
constexpr void check_step_input() {
  static_assert(ShapeOf::good,
                "hapax: this function does not fit here: a step that takes a hapax::Context& is a workflow and goes to "
                "ctx.run_workflow(), any other is a task and goes to ctx.run()");
  if constexpr (ShapeOf::good) {
    if constexpr (ShapeOf::input) {
      static_assert(std::is_convertible_v<const Input&, typename ShapeOf::Input>,
                    "hapax: the input that is given is not what the function takes");
    } else {
      static_assert(std::is_same_v<Input, std::nullptr_t>, "hapax: this function takes no input, but is given one");
    }
  }
}

}  // namespace hapax::detail
