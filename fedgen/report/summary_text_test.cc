// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/summary_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

RunSummary Sample() {
  RunSummary summary;
  summary.rounds = 17;
  summary.episodes = 1'234'567;
  summary.learners.resize(2);
  summary.learners[1].adoptions = 3;
  Tally good, bad;
  good.episodes = bad.episodes = 100;
  good.reached = 90;
  bad.reached = 20;
  good.cost_sum = 37;
  bad.cost_sum = 87;
  summary.race = {{"final-1", {}, bad}, {"incumbent", {}, good}};
  summary.winner = 1;
  summary.guarantees = {{"T1", Standing::kYes, "a statement", ""},
                        {"T4", Standing::kNo, "another", "for a reason"},
                        {"T5", Standing::kPartly, "a third", "not all of it"}};
  return summary;
}

TEST(RunSummaryText, ListsTheRaceAndTheGuarantees) {
  const std::string text = RunSummaryText(Sample());
  EXPECT_THAT(text, StartsWith("17 rounds of fedgen, 1.23 M training episodes"));
  EXPECT_THAT(text,
              HasSubstr("3 adoptions; 1 of 2 learners adopted a better policy at least once"));
  EXPECT_THAT(text, HasSubstr("the race that selects the policy, 100 unseen worlds each"));
  EXPECT_THAT(text, HasSubstr("  <- best.fgp"));
  EXPECT_THAT(text, HasSubstr("\n  yes     T1           a statement\n"));
  EXPECT_THAT(
      text, HasSubstr("\n  no      T4           another\n            not proved: for a reason\n"));
  EXPECT_THAT(text,
              HasSubstr("\n  partly  T5           a third\n            but: not all of it\n"));
  const ProportionInterval exact = ClopperPearson(90, 100, 0.99);
  EXPECT_THAT(text, HasSubstr(fmt::format("[{:.4f}, {:.4f}]", exact.low, exact.high)));
}

TEST(RunSummaryText, SpeaksOfAdoptionsOnlyWhereTheyCanHappen) {
  RunSummary summary = Sample();
  summary.rounds = 1;
  EXPECT_THAT(RunSummaryText(summary), StartsWith("1 round of fedgen, "));
  for (const Algorithm algorithm :
       {Algorithm::kLocal, Algorithm::kFedAvg, Algorithm::kCentralized}) {
    summary.algorithm = algorithm;
    EXPECT_THAT(RunSummaryText(summary), Not(HasSubstr("adoption")));
  }
}

// Four starts share a world: 25 worlds are the samples, and the interval is Hoeffding's.
TEST(RunSummaryText, CountsWorldsNotStarts) {
  RunSummary summary = Sample();
  summary.race_starts = 4;
  const std::string text = RunSummaryText(summary);
  const ProportionInterval honest = HoeffdingInterval(0.9, 25, 0.99);
  EXPECT_THAT(text, HasSubstr(fmt::format("[{:.4f}, {:.4f}]", honest.low, honest.high)));
  EXPECT_THAT(text, HasSubstr("selects the policy, 25 unseen worlds with 4 starts each"));
}

}  // namespace
}  // namespace fedgen
