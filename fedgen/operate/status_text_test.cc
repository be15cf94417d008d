// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/status_text.h"

#include <gtest/gtest.h>

#include "fedgen/base/json-inl.h"

namespace fedgen {
namespace {

CloudStatus Example() {
  CloudStatus status{1'800'000'000.25, "fedgen 0.1.0", "learner-2", {}};
  RunStatus run;
  run.progress = {"paper", 11, "submit", 3, 1};
  run.incumbent = Submission{LearnerId(2), 9, {}, 0.31215, 0.0021, {}, std::string(64, 'a')};
  run.members = {{LearnerId(0), 22, false, true, 75.2},
                 {LearnerId(1), 23, true, false, 0.4},
                 {LearnerId(2), -1, false, false, {}}};
  status.runs = {run};
  return status;
}

TEST(StatusText, IsATable) {
  EXPECT_EQ(StatusText(Example()),
            "fedgen 0.1.0, 2027-01-15 08:00:00 UTC; you are learner-2\n"
            "\n"
            "run paper: submit after round 11, waits for 1 of 3 learners\n"
            "  incumbent  learner 3, round 9, y = 0.3121, b = 0.0021, aaaaaaaaaaaaaaaa...\n"
            "  learner        last heard   silent for  is\n"
            "  learner-1      close 11     75 s        awaited\n"
            "  learner-2      round 12     0 s         settled\n"
            "  learner-3      not yet      ?           here\n");
}

TEST(StatusText, SaysHowARunEndedAndWhatIsNotShown) {
  CloudStatus status = Example();
  RunStatus& run = status.runs[0];
  run.progress = {"x\x1b[2J", 11, "over", 2000, 0};
  run.ending = "rounds";
  run.incumbent.reset();
  run.members = {{LearnerId(0), 23, false, false, 1.0}};
  EXPECT_EQ(StatusText(status),
            "fedgen 0.1.0, 2027-01-15 08:00:00 UTC; you are learner-2\n"
            "\n"
            "run x\\x1b[2J: over after round 11, ended by rounds\n"
            "  learner        last heard   silent for  is\n"
            "  learner-1      final        1 s         done\n"
            "  and 1,999 more\n");
}

TEST(StatusJson, SaysTheSame) {
  Json json;
  CloudStatus status = Example();
  status.peer = "\xff";
  ASSERT_FALSE(ParseJson(StatusJson(status), {}, json));
  EXPECT_EQ(json["runs"][0]["run"], "paper");
  EXPECT_EQ(json["runs"][0]["incumbent"]["learner"], "learner-3");
  EXPECT_EQ(json["runs"][0]["members"][1]["learner"], "learner-2");
  EXPECT_EQ(json["runs"][0]["incumbent"]["hash"], std::string(64, 'a'));
  EXPECT_EQ(json["runs"][0]["members"][0]["silence"], 75.2);
  EXPECT_TRUE(json["runs"][0]["members"][2]["silence"].is_null());
}

}  // namespace
}  // namespace fedgen
