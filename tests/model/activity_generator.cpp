#include "model/generator.h"
#include "model/oracle/oracle.h"
#include "support/manual_clock.h"

namespace hapax::model {

namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kNameSpaces{"default", "tenant"};
const std::vector<std::string> kIds{"a", "a:1", "b"};
const std::vector<std::string> kOccurrences{"o1", "o10", "o2", "o3"};
const std::vector<Duration> kSpans{0ms, 1ms, 1s, 60s, 1h, 24h};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  Sequence run(std::size_t steps) {
    Sequence sequence;
    while (sequence.size() < steps) sequence.push_back(done(next_step()));
    sequence.push_back(ActivityFilter{});
    for (const std::string& name_space : kNameSpaces) {
      for (const std::string& id : kIds) sequence.push_back(RunFilter{name_space, id, std::nullopt, 1000});
    }
    return sequence;
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  bool chance(std::size_t percent) { return below(100) < percent; }
  template <class Item>
  const Item& any(const std::vector<Item>& items) {
    return items[below(items.size())];
  }
  std::string name_space() { return chance(80) ? kNameSpaces[0] : kNameSpaces[1]; }
  std::int32_t limit() { return chance(40) ? 100 : static_cast<std::int32_t>(below(4)); }
  Time time() { return chance(50) ? clock_.now() - any(kSpans) : clock_.now() + any(kSpans); }

  template <class Make>
  auto batch(Make make) {
    std::vector<decltype(make())> items;
    for (std::size_t n = chance(60) ? 1 : 1 + below(5); n > 0; --n) items.push_back(make());
    return items;
  }

  // Also asks the oracle, to learn which revisions there are.
  Step done(Step step) {
    if (const auto* advance = std::get_if<Advance>(&step)) clock_.advance(advance->by);
    oracle_.perform(step, clock_.now());
    return step;
  }

  Step next_step() {
    const std::size_t dice = below(100);
    if (dice < 30) return changes_ = chance(10) && !changes_.empty() ? changes_ : batch([&] { return change(); });
    if (dice < 55) return runs_ = chance(10) && !runs_.empty() ? runs_ : batch([&] { return run_of(any(kIds)); });
    if (dice < 70) return Due{limit()};
    if (dice < 75) return activities();
    if (dice < 85) return runs();
    if (dice < 90) return PurgeRuns{time(), limit()};
    return Advance{1ms + any(kSpans)};
  }

  ActivityChange change() {
    ActivityRow row;
    row.name_space = name_space();
    row.id = any(kIds);
    row.document = chance(80) ? "{}" : "{\"n\":1}";
    row.by_event = chance(20);
    if (chance(70)) row.next_due = time();
    const ActivityRow* stored = oracle_.find_activity(row.name_space, row.id);
    row.revision = stored && chance(90) ? stored->revision : 0;
    if (chance(10)) row.revision += chance(50) ? 1 : -1;
    return {row, chance(15)};
  }

  ActivityRun run_of(const std::string& activity) {
    ActivityRun run;
    run.name_space = name_space();
    run.activity = activity;
    run.occurrence = any(kOccurrences);
    run.cause = static_cast<Cause>(below(3));
    run.at = chance(50) ? ManualClock::kStart : time();
    run.disposition = static_cast<Disposition>(below(5));
    if (chance(70)) run.workflow_id = "w" + std::to_string(below(3));
    if (chance(30)) run.window = Window{run.at, run.at + any(kSpans), static_cast<std::int64_t>(below(10))};
    if (chance(30)) {
      run.event = FiringEvent{"e" + std::to_string(below(3)), chance(50) ? "/shop" : "", {sha256(run.occurrence)}};
    }
    if (chance(50)) run.why = "because " + std::to_string(below(1000));
    return run;
  }

  ActivityFilter activities() {
    ActivityFilter filter;
    if (chance(70)) filter.name_space = name_space();
    if (chance(50)) filter.by_event = chance(50);
    if (filter.name_space && chance(40)) filter.after = any(kIds);
    filter.limit = limit();
    return filter;
  }

  RunFilter runs() {
    RunFilter filter{name_space(), any(kIds), std::nullopt, limit()};
    if (chance(50)) filter.after = RunFilter::Position{chance(50) ? ManualClock::kStart : time(), any(kOccurrences)};
    return filter;
  }

  std::mt19937_64 random_;
  ManualClock clock_;
  Oracle oracle_;
  std::vector<ActivityChange> changes_;  // the last ones: now and then they are sent again
  std::vector<ActivityRun> runs_;
};

}  // namespace

Sequence generate_activities(std::uint64_t seed, std::size_t steps) { return Generator(seed).run(steps); }

}  // namespace hapax::model
