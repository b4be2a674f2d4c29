#include "store/s3/conditions.h"

#include <fmt/format.h>

#include "core/failure.h"
#include "store/s3/documents/envelope.h"

namespace hapax {

namespace {

constexpr int kRacers = 16, kRounds = 3;

void require(bool holds, const std::string& what) {
  if (holds) return;
  throw Failure(Failure::Code::misuse,
                fmt::format("the bucket {}. {}; `hapax doctor --store URL` says more", what, kNeedsConditions));
}

void require_one_after_the_other(ObjectStore& objects, const std::string& name) {
  const PutOutcome created = objects.put(Put{name, "created", {}});
  require(created.written, "cannot create an object with If-None-Match");
  require(!objects.put(Put{name, "created again", {}}).written,
          "does not honour If-None-Match: an object that exists was overwritten");
  require(!objects.put(Put{name, "replaced", Etag(32, '0')}).written,
          "does not honour If-Match: another version was overwritten");
  require(objects.put(Put{name, "replaced", created.etag}).written, "cannot replace an object with If-Match");
}

void require_one_winner(ObjectStore& objects, const std::string& name, const std::optional<Etag>& replaces) {
  std::vector<Put> puts;
  for (int i = 0; i < kRacers; ++i) {
    puts.push_back({name, fmt::format("{} {}", replaces ? "replaced by" : "created by", i), replaces});
  }
  const std::vector<PutOutcome> outcomes = objects.put(puts);
  std::vector<Racer> racers;
  for (std::size_t i = 0; i < puts.size(); ++i) {
    racers.push_back({outcomes[i].written ? Racer::End::won : Racer::End::lost, puts[i].body});
  }
  const auto found = objects.get(name);
  const auto wrong = judge_race(racers, found ? found->body : "");
  require(!wrong, fmt::format("does not honour conditions among writers at the same time: {}", wrong.value_or("")));
}

}  // namespace

std::optional<std::string> judge_race(const std::vector<Racer>& racers, const std::string& found) {
  int winners = 0;
  bool stored = false, unknown = false;
  for (const Racer& racer : racers) {
    winners += racer.end == Racer::End::won ? 1 : 0;
    unknown = unknown || racer.end == Racer::End::unknown;
    stored = stored || (racer.end == Racer::End::won && racer.body == found);
  }
  if (winners > 1) return fmt::format("{} of {} at once were told that they had won", winners, racers.size());
  if (winners == 0 && !unknown) return fmt::format("none of {} at once won", racers.size());
  if (winners == 1 && !stored) return "the winner's object was overwritten by a loser's";
  return {};
}

void require_conditional_writes(ObjectStore& objects) {
  const std::string folder = "doctor/" + s3::random_token() + "/";
  std::vector<std::string> names{folder + "one"};
  for (int round = 0; round < kRounds; ++round) names.push_back(fmt::format("{}race {}", folder, round));
  try {
    require_one_after_the_other(objects, names.front());
    for (std::size_t i = 1; i < names.size(); ++i) {
      require_one_winner(objects, names[i], std::nullopt);
      const auto created = objects.get(names[i]);
      require_one_winner(objects, names[i], created ? std::optional(created->etag) : std::nullopt);
    }
  } catch (const Failure& failure) {
    if (failure.code() == Failure::Code::misuse) objects.remove(names);
    throw;
  }
  objects.remove(names);
}

}  // namespace hapax
