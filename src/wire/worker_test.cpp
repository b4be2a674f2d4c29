#include "wire/worker.h"

#include <gtest/gtest.h>

#include "wire/read_request.h"
#include "wire/write_request.h"

namespace hapax::wire {
namespace {

TEST(Worker, WhatAClaimSaysOfItComesBack) {
  ClaimCall call = read_claim_call(
      parse_json(R"({"worker":"w","sdk":{"name":"python","version":"3.1"},"host":"node-7","pid":4711})"), "default");
  EXPECT_EQ(call.origin, (WorkerOrigin{"python", "3.1", "node-7", 4711}));
  EXPECT_EQ(read_claim_call(parse_json(write_claim_call(call)), "default").origin, call.origin);
  call.origin = {"python", "", "", 0};
  EXPECT_EQ(read_claim_call(parse_json(write_claim_call(call)), "default").origin, call.origin);
}

TEST(Worker, AClaimNeedNotSayAnything) {
  const ClaimCall call = read_claim_call(parse_json(R"({"sdk":null,"host":null,"pid":null})"), "default");
  EXPECT_EQ(call.origin, WorkerOrigin{});
  EXPECT_EQ(write_claim_call(call).find("sdk"), std::string::npos);
}

TEST(Worker, AListComesBackAsItWas) {
  const WorkerInfo full{.name_space = "default",
                        .name = "w1",
                        .origin = {"c++", "1.2.3", "node-7", 4711},
                        .queues = {"work", "mail"},
                        .types = {"charge"},
                        .tasks = false,
                        .workflows = true,
                        .last_seen_at = from_ms(1'769'515'200'123),
                        .running = 3};
  WorkerInfo bare;
  bare.name_space = "default";
  bare.name = "w2";
  bare.queues = {"work"};
  const std::vector<WorkerInfo> both{full, bare};
  const std::string text = write_workers(both);
  EXPECT_EQ(read_workers(parse_json(text), "default"), both);
  EXPECT_NE(text.find(R"("host":null,"pid":null,"sdk":null)"), std::string::npos) << text;
}

}  // namespace
}  // namespace hapax::wire
