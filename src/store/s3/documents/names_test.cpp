#include "store/s3/documents/names.h"

#include <gtest/gtest.h>

#include <set>

#include "support/task.h"

namespace hapax::s3 {
namespace {

using namespace std::chrono_literals;

const Time kNow = from_ms(1'767'225'600'123);

Execution pending(std::uint64_t id, std::int32_t priority, Time run_at) {
  Execution execution;
  execution.id = test_id(id);
  execution.name_space = "default";
  execution.queue = "a/b";
  execution.priority = priority;
  execution.run_at = run_at;
  return execution;
}

std::string ready_name(const Execution& execution) { return wanted_hints(execution, kNow).at(0).name(); }

TEST(Names, LayoutIsThatOfTheSpecification) {
  ExecutionId id = test_id(1);
  id.bytes[15] = 0xab;
  EXPECT_EQ(task_name(id), "tasks/ab/" + id.to_string() + ".json");
  EXPECT_EQ(task_id(task_name(id)), id);
  const IdentityHash hash = key_hash("t", "k");
  const std::string file = "/" + hash.to_string().substr(7) + ".json";
  const auto folder = [&](Scope::Tag tag, const std::string& name) {
    const std::string record = record_name({tag, name}, hash);
    EXPECT_TRUE(record.starts_with("idempotency/") && record.ends_with(file)) << record;
    return record.substr(12, record.size() - 12 - file.size());
  };
  EXPECT_EQ(folder(Scope::Tag::type, "charge_customer"), "charge_customer");
  EXPECT_EQ(folder(Scope::Tag::type, "a/b c"), "a%2fb%20c");
  EXPECT_EQ(folder(Scope::Tag::queue, "payments"), "queue=payments");
  EXPECT_EQ(folder(Scope::Tag::custom, "per customer"), "custom=per%20customer");
  EXPECT_EQ(folder(Scope::Tag::global, ""), "global");
  EXPECT_EQ(folder(Scope::Tag::workflow, ""), "workflow");
}

TEST(Names, NoTypeSharesTheFolderOfAnotherScope) {
  const IdentityHash hash = key_hash("t", "k");
  std::set<std::string> folders;
  for (const char* type : {"global", "workflow", "queue=x", "custom=x", "queue", "custom", "x", "%67lobal", ""}) {
    EXPECT_TRUE(folders.insert(record_name({Scope::Tag::type, type}, hash)).second) << type;
  }
  for (const NamedScope& scope : {NamedScope{Scope::Tag::global, ""}, NamedScope{Scope::Tag::workflow, ""},
                                  NamedScope{Scope::Tag::queue, "x"}, NamedScope{Scope::Tag::custom, "x"}}) {
    EXPECT_TRUE(folders.insert(record_name(scope, hash)).second) << record_name(scope, hash);
  }
}

TEST(Names, AnyTextIsOneSegment) {
  for (const std::string& text :
       {std::string(), std::string("."), std::string("a/b"), std::string("100%"), std::string("ü\0", 3)}) {
    EXPECT_EQ(escape(text).find('/'), std::string::npos);
    EXPECT_EQ(unescape(escape(text)), text);
  }
  EXPECT_NE(escape(""), escape(std::string(1, '\0')));
}

TEST(Names, ReadyOnesSortInTheOrderOfClaims) {
  const auto high = ready_name(pending(3, 5, kNow)), early = ready_name(pending(2, 0, kNow - 1s));
  const auto first = ready_name(pending(1, 0, kNow)), second = ready_name(pending(2, 0, kNow)),
             low = ready_name(pending(1, -5, kNow));
  EXPECT_LT(high, early);
  EXPECT_LT(early, first);
  EXPECT_LT(first, second);
  EXPECT_LT(second, low);
}

TEST(Names, DelayedOnesComeBeforeTheReadyOnesByTime) {
  const auto soon = ready_name(pending(2, -5, kNow + 1s)), later = ready_name(pending(1, 5, kNow + 2s));
  EXPECT_LT(soon, later);
  EXPECT_LT(later, ready_name(pending(1, INT32_MAX, kNow)));
}

TEST(Names, HintsComeBack) {
  Execution execution = pending(7, -3, kNow + 5s);
  execution.kind = hapax::Kind::workflow;
  execution.concurrency_key = "k";
  execution.idempotency_key = "w";
  execution.parent = test_id(1);
  execution.deadline_at = kNow + 1h;
  std::vector<Hint> hints = wanted_hints(execution, kNow);
  execution.status = Status::running;
  for (Hint& hint : wanted_hints(execution, kNow)) hints.push_back(hint);
  execution.status = Status::completed;
  execution.finished_at = kNow;
  for (Hint& hint : wanted_hints(execution, kNow)) hints.push_back(hint);
  for (Hint& hint : hints) {
    hint.mark = new_mark();
    const auto back = Hint::parse(hint.name());
    ASSERT_TRUE(back) << hint.name();
    EXPECT_EQ(back->name().substr(0, 6), hint.name().substr(0, 6));
    EXPECT_EQ(back->id, hint.id);
    EXPECT_EQ(back->time, hint.time);
    EXPECT_EQ(back->mark, hint.mark);
    EXPECT_TRUE(back->serves(hint)) << hint.name();
  }
}

TEST(Names, LatestRunOfAWorkflowComesFirst) {
  Execution older = pending(1, 0, kNow), newer = pending(2, 0, kNow);
  for (Execution* run : {&older, &newer}) {
    run->kind = hapax::Kind::workflow;
    run->idempotency_key = "w";
    run->created_at = kNow;
  }
  const auto same_time = wanted_hints(newer, kNow).back().name();
  EXPECT_LT(same_time, wanted_hints(older, kNow).back().name());
  newer.created_at += 1ms;
  EXPECT_LT(wanted_hints(newer, kNow).back().name(), same_time);
  EXPECT_TRUE(same_time.starts_with(runs_prefix("default", "w")));
}

TEST(Names, AnEarlierLeaseHintServesALaterLease) {
  Execution execution = pending(1, 0, kNow);
  execution.status = Status::running;
  execution.lease_expires_at = kNow + 1min;
  const Hint early = wanted_hints(execution, kNow).at(0);
  execution.lease_expires_at = kNow + 2min;
  const Hint late = wanted_hints(execution, kNow).at(0);
  EXPECT_TRUE(early.serves(late));
  EXPECT_FALSE(late.serves(early));
}

TEST(Names, EndsComeBack) {
  const std::string name = end_hint(End::grave, kNow, "tasks/ab/x.json");
  const auto back = parse_end_hint(End::grave, name);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->time, kNow);
  EXPECT_EQ(back->object_name, "tasks/ab/x.json");
  EXPECT_FALSE(parse_end_hint(End::request, name));
}

}  // namespace
}  // namespace hapax::s3
