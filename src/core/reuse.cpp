#include "core/reuse.h"

namespace hapax {

std::string_view to_string(Reuse reuse) {
  switch (reuse) {
    case Reuse::allow_failed: return "allow_failed";
    case Reuse::reject: return "reject";
    case Reuse::allow_closed: return "allow_closed";
    case Reuse::replace: return "replace";
  }
  return {};
}

std::optional<Reuse> parse_reuse(std::string_view text) {
  for (Reuse reuse : {Reuse::allow_failed, Reuse::reject, Reuse::allow_closed, Reuse::replace}) {
    if (to_string(reuse) == text) return reuse;
  }
  return {};
}

Verdict decide(Status owner, Reuse reuse) {
  if (!is_closed(owner)) return reuse == Reuse::replace ? Verdict::cancel_owner : Verdict::duplicate;
  switch (reuse) {
    case Reuse::reject: return Verdict::duplicate;
    case Reuse::allow_failed: return owner == Status::completed ? Verdict::duplicate : Verdict::create_new;
    case Reuse::allow_closed:
    case Reuse::replace: return Verdict::create_new;
  }
  return Verdict::duplicate;
}

Difference difference(const Execution& submission, const Execution& owner) {
  if (submission.type != owner.type) return Difference::type;
  const bool compares_input = submission.identity && submission.identity->compares_input();
  return compares_input && submission.input_hash != owner.input_hash ? Difference::input : Difference::none;
}

}  // namespace hapax
