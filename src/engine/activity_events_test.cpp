#include "core/field.h"
#include "engine/activities_test.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ActivitiesTest, AnEventIsTheSameWhateverBecameOfTheActivity) {
  start();
  put(settings(R"({"event":{"type":"paid"}})", R"("workflow":{"type":"report","input":{"region":"eu"}})"));
  deliver({event("e1")});
  for (const std::string start :
       {R"("workflow":{"type":"report","input":{"region":"us"}})", R"("workflow":{"type":"another"})",
        R"("tasks":[{"type":"load"}])", R"("signal":{"workflow_id":"w","name":"n"})"}) {
    put(settings(R"({"event":{"type":"paid"}})", start));
    const auto again = deliver({event("e1"), event("e1", "2")});
    EXPECT_THAT(again[0].duplicates, ElementsAre("activity-a:e1")) << start;
    EXPECT_THAT(again[1].conflicts, ElementsAre("activity-a:e1")) << start;
    EXPECT_FALSE(again[0].is_refused());
    EXPECT_TRUE(again[1].is_refused());
  }
  put(settings(R"({"event":{"type":"paid"}})", R"("tasks":[{"type":"load","input":7},{"type":"load"}])"));
  EXPECT_THAT(deliver({event("e2")})[0].started, SizeIs(1));
  put(settings(R"({"event":{"type":"paid"}})", R"("tasks":[{"type":"load","input":8}])"));
  EXPECT_THAT(deliver({event("e2")})[0].duplicates, SizeIs(1));
  EXPECT_THAT(deliver({event("e2", "2")})[0].conflicts, SizeIs(1));
}

TEST_F(ActivitiesTest, AttributesThatDoNotCountMakeNoConflict) {
  start();
  put(settings(R"({"event":{"type":"paid"}})"));
  const std::string begin = R"({"specversion":"1.0","id":"e1","source":"/shop","type":"paid","data":1)";
  EXPECT_THAT(deliver({begin + R"(,"time":"2026-01-01T00:00:00Z"})"})[0].started, SizeIs(1));
  for (const char* more :
       {"}", R"(,"time":"2026-01-01T00:00:01Z"})", R"(,"traceparent":"00-a-b-01","tracestate":"x=1"})",
        R"(,"dataschema":"urn:s","datacontenttype":"application/x+json"})", R"(,"anextensionwithalongname":true})"}) {
    EXPECT_THAT(deliver({begin + more})[0].duplicates, SizeIs(1)) << more;
  }
  EXPECT_THAT(deliver({begin + R"(,"subject":"s"})"})[0].conflicts, SizeIs(1));
  EXPECT_THAT(deliver({R"({"specversion":"1.0","id":"e1","source":"/other","type":"paid","data":1})"})[0].conflicts,
              SizeIs(1));
}

// Of a run that is purged the ledger knows the event.
TEST_F(ActivitiesTest, AnEventIsComparedAfterItsRunIsPurged) {
  QueueSettings gone;
  gone.retention = Duration(0);
  start();
  engine_->put_queue(kNamespace, "default", gone);
  put(settings(R"({"event":{"type":"paid"}})"));
  deliver({event("e1")});
  complete_all_workflows();
  eventually([&] { return store_->purge(100), workflows().empty(); });
  put(settings(R"({"event":{"type":"paid"}})", R"("workflow":{"type":"report","input":1})"));
  EXPECT_THAT(deliver({event("e1")})[0].duplicates, SizeIs(1));
  EXPECT_THAT(deliver({event("e1", "2")})[0].conflicts, SizeIs(1));
  EXPECT_THAT(workflows(), IsEmpty());
}

TEST_F(ActivitiesTest, EventsOfTwoSourcesAreTwoWhereSourceAndIdMakeThem) {
  start();
  put(settings(R"({"event":{"type":"paid","dedupe_by":"source_and_id"}})"));
  const std::string other = R"({"specversion":"1.0","id":"e1","source":"/web:8080","type":"paid","data":1})";
  const auto receipts = deliver({event("e1"), other, event("e1"), event("e1", "2")});
  EXPECT_THAT(receipts[0].started, ElementsAre("activity-a:/shop:e1"));
  EXPECT_THAT(receipts[1].started, ElementsAre("activity-a:/web:8080:e1"));
  EXPECT_THAT(receipts[2].duplicates, ElementsAre("activity-a:/shop:e1"));
  EXPECT_THAT(receipts[3].conflicts, ElementsAre("activity-a:/shop:e1"));
  const auto rows = runs();
  ASSERT_THAT(rows, SizeIs(2));
  for (const ActivityRun& row : rows) EXPECT_EQ(row.event->id, "e1");
  // The two parts run together where a source ends as an id begins: told as a conflict, and never taken for the same.
  const std::string ambiguous = R"({"specversion":"1.0","id":"8080:e1","source":"/web","type":"paid","data":1})";
  EXPECT_THAT(deliver({ambiguous})[0].conflicts, ElementsAre("activity-a:/web:8080:e1"));
}

TEST_F(ActivitiesTest, AWorkflowIdThatWouldBeTooLongIsRefusedAndNothingIsStarted) {
  start();
  put(settings(R"({"event":{"type":"paid","dedupe_by":"source_and_id"}})"));
  const auto from = [](std::size_t source_bytes) {
    return R"({"specversion":"1.0","id":"e1","type":"paid","source":")" + std::string(source_bytes, 's') + "\"}";
  };
  const std::size_t longest = 255 - std::string("activity-a::e1").size();
  EXPECT_THAT(deliver({from(longest)})[0].started, SizeIs(1));
  try {
    deliver({event("e2"), from(longest + 1)});
    FAIL() << "it was taken";
  } catch (const InvalidField& error) {
    EXPECT_EQ(error.pointer(), "/1/source");
    EXPECT_THAT(error.what(), AllOf(HasSubstr("256 bytes"), HasSubstr("Nothing was started")));
  }
  EXPECT_THAT(workflow_ids(), SizeIs(1));
}

TEST_F(ActivitiesTest, AnEventStartsOnceAndOtherContentIsAConflict) {
  start();
  put(settings(R"({"event":{"type":"paid"}})"));
  const auto first = deliver({event("e1"), event("e2"), event("")});
  EXPECT_THAT(first[0].started, ElementsAre("activity-a:e1"));
  EXPECT_THAT(first[1].started, ElementsAre("activity-a:e2"));
  EXPECT_TRUE(first[2].id_assigned);
  EXPECT_THAT(first[2].started, ElementsAre("activity-a:" + first[2].id));
  const auto again = deliver({event("e1"), event("e2", "2"), event("e1")});
  EXPECT_THAT(again[0].duplicates, ElementsAre("activity-a:e1"));
  EXPECT_THAT(again[1].conflicts, ElementsAre("activity-a:e2"));
  EXPECT_THAT(again[2].duplicates, ElementsAre("activity-a:e1"));
  EXPECT_THAT(workflow_ids(), SizeIs(3));
  EXPECT_THAT(runs(), AllOf(SizeIs(3), Each(disposed(Disposition::ran))));
}

TEST_F(ActivitiesTest, AnEventInAPauseIsSkippedAndMadeUpForWhenItComesAgain) {
  start();
  put(settings(R"({"event":{"type":"paid"}})"));
  activities().set_paused(kNamespace, "a", true);
  EXPECT_THAT(deliver({event("e1")})[0].started, IsEmpty());
  EXPECT_THAT(runs(), ElementsAre(disposed(Disposition::skipped)));
  activities().set_paused(kNamespace, "a", false);
  EXPECT_THAT(deliver({event("e1")})[0].started, SizeIs(1));
  EXPECT_THAT(runs(), ElementsAre(disposed(Disposition::caught_up)));
}

}  // namespace
}  // namespace hapax
