// Signals: what the world tells a running workflow.
//
//   inline constexpr hapax::Signal<Packed> packed{"packed"};
//
//   if (auto p = ctx.wait(packed, 24h)) …                       // in the workflow
//   handle.signal(packed, {"eve"}, hapax::request("click-1"));  // from outside; once per request key
#pragma once

namespace hapax {

// Its name, and the type of its payload; void: it has none.
template <class T = void>
struct Signal {
  const char* name;
};

// A signal that the workflow's code answers, once per request key: its name, and the types of question and answer.
//
//   inline constexpr hapax::Update<int, int> reserve_more{"reserve_more"};
//
//   ctx.on(reserve_more, [&](int count) { return left -= count; });              // in the workflow
//   const int left = handle.update(reserve_more, 3, hapax::request("more-1"));  // from outside
template <class Question, class Answer>
struct Update {
  const char* name;
};

}  // namespace hapax
