// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/summary_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fedgen/certify/bounds.h"
#include "fedgen/report/evaluation.h"

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
  EXPECT_THAT(text, HasSubstr("\n  proved      a statement [T1]\n"));
  EXPECT_THAT(text, HasSubstr("\n  not proved  another [T4]\n"));
  EXPECT_THAT(text, HasSubstr("\n  in part     a third [T5]\n"));
  EXPECT_THAT(text, HasSubstr("\n  why not, and what would be: summary.json"));
  // Two racers: each interval at half the risk, so that both hold at once.
  const ProportionInterval exact = ClopperPearson(90, 100, 0.995);
  EXPECT_THAT(text, HasSubstr(fmt::format("[{:.4f}, {:.4f}]", exact.low, exact.high)));
}

// What a person needs first comes first.
TEST(RunSummaryText, BeginsWithTheCertificate) {
  RunSummary summary = Sample();
  summary.certificate.emplace();
  summary.certificate->safe_arrival = 0.99519;
  summary.certificate->expected_cost = 0.32911;
  summary.certificate->worlds = 100'000;
  EXPECT_THAT(RunSummaryText(summary),
              StartsWith("safe arrival >= 0.9951 and expected cost J <= 0.3292, jointly with 99 % "
                         "confidence (100,000 unseen worlds, 0 failures)\n"));
}

// The winner's interval holds though it was chosen: of 500 races among 8 equal policies its lower
// end misses the true rate in at most 1 %. Intervals one by one missed in 4 %.
TEST(RunSummaryText, GivesTheWinnerAnIntervalThatSurvivesTheChoice) {
  constexpr int kRaces = 500, kRacers = 8, kWorlds = 1000;
  constexpr double kRate = 0.9;
  std::mt19937_64 engine(5);
  std::binomial_distribution<std::int64_t> arrivals(kWorlds, kRate);
  int missed = 0, missed_one_by_one = 0;
  for (int race = 0; race < kRaces; ++race) {
    std::int64_t best = 0;
    for (int racer = 0; racer < kRacers; ++racer) best = std::max(best, arrivals(engine));
    Evaluation winner;
    winner.tally.episodes = kWorlds;
    missed += RateInterval(winner, best, RaceConfidence(kRacers)).low > kRate ? 1 : 0;
    missed_one_by_one += RateInterval(winner, best).low > kRate ? 1 : 0;
  }
  EXPECT_LE(missed, 10);
  EXPECT_GT(missed_one_by_one, 10);
}

TEST(RunSummaryText, SpeaksOfAdoptionsOnlyWhereTheyCanHappen) {
  RunSummary summary = Sample();
  summary.rounds = 1;
  EXPECT_THAT(RunSummaryText(summary), StartsWith("1 round of fedgen, "));
  for (const Algorithm algorithm :
       {Algorithm::kLocal, Algorithm::kFedAvg, Algorithm::kCentralized, Algorithm::kSingle}) {
    summary.algorithm = algorithm;
    EXPECT_THAT(RunSummaryText(summary), Not(HasSubstr("adoption")));
  }
}

// Four starts share a world: 25 worlds are the samples, and the interval is Hoeffding's.
TEST(RunSummaryText, CountsWorldsNotStarts) {
  RunSummary summary = Sample();
  summary.race_starts = 4;
  const std::string text = RunSummaryText(summary);
  const ProportionInterval honest = HoeffdingInterval(0.9, 25, 0.995);
  EXPECT_THAT(text, HasSubstr(fmt::format("[{:.4f}, {:.4f}]", honest.low, honest.high)));
  EXPECT_THAT(text, HasSubstr("selects the policy, 25 unseen worlds with 4 starts each"));
}

TEST(RunSummaryText, SaysHowGoodItCouldBe) {
  RunSummary summary = Sample();
  EXPECT_THAT(RunSummaryText(summary), Not(HasSubstr("to compare with")));
  Baselines& baselines = summary.baselines.emplace();
  Tally gap = summary.race[1].tally;
  gap.reached = 96;
  baselines.drivers = {{"straight", summary.race[0].tally}, {"gap-follower", gap}};
  baselines.crossable = {100, 3, 99, 30'000};
  const ProportionInterval same = ClopperPearson(96, 100, 0.995);  // as the racers'
  std::string text = RunSummaryText(summary);
  EXPECT_THAT(text, HasSubstr(fmt::format("\n  gap-follower  0.9600 [{:.4f}, {:.4f}]  0.3700 [",
                                          same.low, same.high)));
  // Rounded down, and open above: the search may have missed a way.
  const double low = std::floor(1e4 * ClopperPearson(99, 100, 0.99).low) / 1e4;
  EXPECT_THAT(text, HasSubstr(fmt::format("can be crossed, at least: 0.9900 [{:.4f}, 1] (a search "
                                          "that knows the map finds a way in 2 of the 3 episodes",
                                          low)));
  EXPECT_THAT(text,
              HasSubstr("cannot be told apart by safe arrival (0.9000 against 0.9600, 99 %)"));
  EXPECT_EQ(text.find("<- best.fgp"), text.rfind("<- best.fgp"));
  baselines.with_gap_follower.verdict = Comparison::Verdict::kWorse;
  EXPECT_THAT(
      RunSummaryText(summary),
      HasSubstr("\nthe gap follower, which learns nothing, does better here (0.9600 against "
                "0.9000, 99 %): see docs/when-it-does-not-learn.md\n"));
  baselines.with_gap_follower.verdict = Comparison::Verdict::kBetter;
  EXPECT_THAT(
      RunSummaryText(summary),
      HasSubstr("\nbest.fgp does better than the gap follower, which learns nothing (0.9000 "
                "against 0.9600, 99 %)\n"));
  EXPECT_THAT(RunSummaryText(summary), Not(HasSubstr("driving straight")));
  baselines.with_straight.verdict = Comparison::Verdict::kWorse;
  EXPECT_THAT(RunSummaryText(summary), HasSubstr("\ndriving straight ahead does better here ("));
  EXPECT_THAT(RunSummaryText(summary), Not(HasSubstr("the same policy")));
  summary.race[0].also = {"final-7", "incumbent"};
  EXPECT_THAT(RunSummaryText(summary), HasSubstr("\n    the same policy: final-7, incumbent\n"));
}

}  // namespace
}  // namespace fedgen
