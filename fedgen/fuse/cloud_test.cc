// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/cloud.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <functional>
#include <limits>

#include "fedgen/fuse/cloud_testing.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Cloud, WelcomesWhenEverybodyHasJoined) {
  Cloud cloud({}, Ids(3));
  ASSERT_TRUE(cloud.Receive(JoinMessage{kC, {5, 5}}));
  ASSERT_TRUE(cloud.Receive(JoinMessage{kB, {5, 5}}));
  EXPECT_FALSE(cloud.WelcomeOf(kB));
  ASSERT_TRUE(cloud.Receive(JoinMessage{kA, {1, 2}}));
  // Learners that begin alike have the first of them as origin.
  EXPECT_EQ(cloud.WelcomeOf(kA)->origin, kA);
  EXPECT_EQ(cloud.WelcomeOf(kB)->origin, kB);
  EXPECT_EQ(cloud.WelcomeOf(kC)->origin, kB);
  EXPECT_THAT(cloud.WelcomeOf(kC)->start, IsEmpty());
  EXPECT_FALSE(cloud.WelcomeOf(LearnerId(7)));

  FederationOptions fedavg;
  fedavg.algorithm = Algorithm::kFedAvg;
  Cloud average(fedavg, Ids(3));
  JoinAll(average, 3);
  for (const LearnerId id : Ids(3)) {
    EXPECT_THAT(average.WelcomeOf(id)->start, ElementsAre(0, 1));
    EXPECT_EQ(average.WelcomeOf(id)->origin, kA);
  }
}

TEST(Cloud, RemembersTheBestOfAllRounds) {
  Cloud cloud({}, Ids(2));
  JoinAll(cloud, 2);
  ASSERT_TRUE(cloud.Receive(Says(1, Make(kB, 1, kB, 0.5, {2, 0}), 10)));
  EXPECT_EQ(cloud.AnswerTo(1), nullptr);
  ASSERT_TRUE(cloud.Receive(Says(1, Make(kA, 1, kA, 0.25, {1, 0}), 7)));
  ASSERT_NE(cloud.AnswerTo(1), nullptr);
  EXPECT_EQ(cloud.AnswerTo(1)->incumbent->learner, kA);
  EXPECT_THAT(cloud.AnswerTo(1)->participants, ElementsAre(kA, kB));
  EXPECT_EQ(cloud.AnswerTo(1)->episodes, 17);
  EXPECT_EQ(cloud.EndingAfter(1), std::nullopt);
  CloseAll(cloud, 1, 2, kA);
  EXPECT_EQ(cloud.EndingAfter(1), Ending::kNotYet);
  ASSERT_TRUE(cloud.Receive(Says(2, Make(kA, 2, kA, 0.875, {3, 0}))));
  ASSERT_TRUE(cloud.Receive(Says(2, Make(kB, 2, kB, 0.4375, {4, 0}))));
  EXPECT_EQ(cloud.AnswerTo(1), nullptr);
  EXPECT_EQ(cloud.AnswerTo(2)->incumbent->round, 1);
  EXPECT_THAT(cloud.AnswerTo(2)->incumbent->theta, ElementsAre(1, 0));
  EXPECT_THAT(cloud.AnswerTo(2)->candidates, IsEmpty());
}

TEST(Cloud, TakesAMessageOnceAndRefusesAnotherInItsPlace) {
  Cloud cloud({}, Ids(2));
  const JoinMessage join{kA, {1, 2}};
  ASSERT_TRUE(cloud.Receive(join));
  const std::string before = ToBytes(cloud.state());
  ASSERT_TRUE(cloud.Receive(join));
  EXPECT_EQ(ToBytes(cloud.state()), before);
  ExpectRefused(cloud.Receive(JoinMessage{kA, {1, 3}}), "something else than before");
  ExpectRefused(cloud.Receive(JoinMessage{LearnerId(2), {1, 2}}), "not part of this run");
  ExpectRefused(cloud.Receive(JoinMessage{kB, {1, 2, 3}}), "another size");
  ExpectRefused(cloud.Receive(Says(1, Make(kA, 1, kA, 0.5, {1, 2}))), "has not begun");
  ASSERT_TRUE(cloud.Receive(JoinMessage{kB, {3, 4}}));

  const RoundMessage one = Says(1, Make(kA, 1, kA, 0.5, {1, 2}));
  ASSERT_TRUE(cloud.Receive(one));
  ASSERT_TRUE(cloud.Receive(Says(1, Make(kB, 1, kB, 0.75, {3, 4}))));
  const RoundAnswer answer = *cloud.AnswerTo(1);
  CloseAll(cloud, 1, 2, kA);
  // A host that was killed repeats its round: the same bytes change nothing, others are refused.
  const std::string then = ToBytes(cloud.state());
  ASSERT_TRUE(cloud.Receive(one));
  ASSERT_TRUE(cloud.Receive(CloseMessage{kA, 1, kA}));
  EXPECT_EQ(ToBytes(cloud.state()), then);
  EXPECT_EQ(ToBytes(*cloud.AnswerTo(1)), ToBytes(answer));
  EXPECT_EQ(cloud.EndingAfter(1), Ending::kNotYet);
  ExpectRefused(cloud.Receive(Says(1, Make(kA, 1, kA, 0.25, {1, 2}))),
                "something else than before");
  ExpectRefused(cloud.Receive(CloseMessage{kA, 1, kA, Outlook::kSettled}),
                "something else than before");
  EXPECT_EQ(ToBytes(cloud.state()), then);
}

TEST(Cloud, RefusesWhatIsNoMeasurement) {
  Cloud cloud({}, Ids(2));
  JoinAll(cloud, 2);
  const std::string before = ToBytes(cloud.state());
  const auto spoiled = [&](const std::function<void(Submission&)>& spoil) {
    Submission s = Make(kA, 1, kA, 0.5, {1, 2});
    spoil(s);
    return cloud.Receive(Says(1, s));
  };
  const char* const no = "no measurement";
  ExpectRefused(spoiled([](Submission& s) { s.y = 1.5; }), no);
  ExpectRefused(spoiled([](Submission& s) { s.y = std::nan(""); }), no);
  ExpectRefused(spoiled([](Submission& s) { s.b = -1; }), no);
  ExpectRefused(spoiled([](Submission& s) { s.theta[0] = 9; }), no);  // not what the hash says
  ExpectRefused(spoiled([](Submission& s) {
                  s.theta = {1, 2, 3};
                  s.hash = HashOf(s.theta);
                }),
                no);
  ExpectRefused(spoiled([](Submission& s) {
                  s.theta[1] = std::numeric_limits<float>::infinity();
                  s.hash = HashOf(s.theta);
                }),
                "its policy is no longer made of finite numbers");
  ExpectRefused(spoiled([](Submission& s) { s.origin = LearnerId(9); }), no);
  const auto said = [&](const std::function<void(RoundMessage&)>& spoil) {
    RoundMessage message = Says(1, Make(kA, 1, kA, 0.5, {1, 2}));
    spoil(message);
    return cloud.Receive(message);
  };
  ExpectRefused(said([](RoundMessage& m) { m.learner = kB; }), "speaks for another");
  ExpectRefused(said([](RoundMessage& m) { m.round = 0; }), "names no round");
  ExpectRefused(said([](RoundMessage& m) { m.round = std::numeric_limits<int>::max(); }),
                "names no round");
  ExpectRefused(said([](RoundMessage& m) { m.round = std::numeric_limits<int>::min(); }),
                "names no round");
  ExpectRefused(said([](RoundMessage& m) { m.judged = {*m.submission}; }), "no candidate");
  ExpectRefused(said([](RoundMessage& m) { m.verdicts = {{kB, {}}}; }), "no verdict of its own");
  ExpectRefused(said([](RoundMessage& m) { m.verdicts = {{kA, {std::nan(""), kB, 1, ""}}}; }),
                "no verdict of its own");
  ExpectRefused(said([](RoundMessage& m) { m.episodes = -1; }), "miscounts episodes");
  ExpectRefused(said([](RoundMessage& m) { m.learner = m.submission->learner = LearnerId(7); }),
                "not part of this run");
  ExpectRefused(
      cloud.Receive(CloseMessage{kA, std::numeric_limits<int>::max(), kA, Outlook::kSettled}),
      "names no round");
  ExpectRefused(cloud.Receive(CloseMessage{kA, 1, LearnerId(5), Outlook::kSettled}),
                "not part of this run");
  EXPECT_EQ(ToBytes(cloud.state()), before);

  // A stranger does not decide how large policies are.
  Cloud fresh({}, Ids(1));
  ExpectRefused(fresh.Receive(JoinMessage{kB, {1, 2, 3}}), "not part of this run");
  ExpectRefused(fresh.Receive(JoinMessage{kA, {}}), "another size");
  EXPECT_TRUE(fresh.Receive(JoinMessage{kA, {1, 2}}));
}

TEST(Cloud, EndsTheRunForOneOfThreeReasons) {
  const auto run = [](FederationOptions options, Outlook outlook, std::int64_t episodes) {
    Cloud cloud(options, Ids(1));
    JoinAll(cloud, 1);
    EXPECT_TRUE(cloud.Receive(Says(1, Make(kA, 1, kA, 0.5, {1, 2}), episodes)));
    CloseAll(cloud, 1, 1, kA, outlook);
    return *cloud.EndingAfter(1);
  };
  EXPECT_EQ(run({.rounds = 2, .episodes = 10}, Outlook::kSearches, 9), Ending::kNotYet);
  EXPECT_EQ(run({.rounds = 2, .episodes = 10}, Outlook::kSearches, 10), Ending::kEpisodes);
  EXPECT_EQ(run({.rounds = 2}, Outlook::kSettled, 10), Ending::kSettled);
  EXPECT_EQ(run({.rounds = 1}, Outlook::kSettled, 10), Ending::kRounds);
}

// A run that is over goes on with more rounds, unless it would have ended all the same.
TEST(Cloud, EndsAnewWithAnotherNumberOfRounds) {
  const auto ending = [](FederationOptions before, FederationOptions after, Outlook outlook) {
    Cloud cloud(before, Ids(1));
    JoinAll(cloud, 1);
    EXPECT_TRUE(cloud.Receive(Says(1, Make(kA, 1, kA, 0.5, {1, 2}), 10)));
    CloseAll(cloud, 1, 1, kA, outlook);
    Cloud restored(after, Ids(1));
    restored.set_state(cloud.state());
    const Ending found = *restored.EndingAfter(1);
    const bool goes_on = restored.Receive(Says(2, Make(kA, 2, kA, 0.5, {1, 2}), 20)).has_value();
    EXPECT_EQ(goes_on, found == Ending::kNotYet);
    return found;
  };
  EXPECT_EQ(ending({.rounds = 1}, {.rounds = 1}, Outlook::kSearches), Ending::kRounds);
  EXPECT_EQ(ending({.rounds = 1}, {.rounds = 2}, Outlook::kSearches), Ending::kNotYet);
  EXPECT_EQ(ending({.rounds = 1}, {.rounds = 2}, Outlook::kSettled), Ending::kSettled);
  EXPECT_EQ(
      ending({.rounds = 1, .episodes = 10}, {.rounds = 2, .episodes = 10}, Outlook::kSearches),
      Ending::kEpisodes);
  EXPECT_EQ(ending({.rounds = 2}, {.rounds = 1}, Outlook::kSettled), Ending::kRounds);
}

// Three learners, two of one origin; every second round their mean is nominated, for the learner
// whose turn it is, if somebody measured anew since the last time.
TEST(Cloud, NominatesTheMeanOfTheCommonestOrigin) {
  Cloud cloud({.rounds = 100, .average_every = 2}, Ids(3));
  JoinAll(cloud, 3);
  const auto round = [&](int k, int measured) {
    RoundMessage with_judged = Says(k, Make(kA, measured, kB, 0.5, {1, 4}));
    with_judged.judged = {Make(LearnerId::Cloud(), k, kB, 0.25, {50, 50})};
    EXPECT_TRUE(cloud.Receive(with_judged));
    EXPECT_TRUE(cloud.Receive(Says(k, Make(kC, 1, kC, 0.5, {9, 9}))));
    EXPECT_TRUE(cloud.Receive(Says(k, Make(kB, 1, kB, 0.5, {2, 0}))));
    const std::vector<Candidate> candidates = cloud.AnswerTo(k)->candidates;
    EXPECT_EQ(cloud.AnswerTo(k)->incumbent->learner, LearnerId::Cloud());
    EXPECT_THAT(cloud.AnswerTo(k)->participants, ElementsAre(kA, kB, kC));
    EXPECT_TRUE(cloud.Receive(CloseMessage{kA, k, kB}));
    EXPECT_TRUE(cloud.Receive(CloseMessage{kB, k, kB}));
    EXPECT_TRUE(cloud.Receive(CloseMessage{kC, k, kC}));
    return candidates;
  };
  EXPECT_THAT(round(1, 1), IsEmpty());
  const std::vector<Candidate> second = round(2, 2);
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_THAT(second[0].theta, ElementsAre(1.5F, 2.0F));  // not the Cloud's own
  EXPECT_EQ(second[0].origin, kB);
  EXPECT_EQ(second[0].measurer, kB);
  EXPECT_THAT(round(3, 3), IsEmpty());
  const std::vector<Candidate> fourth = round(4, 3);
  ASSERT_THAT(fourth, SizeIs(1));
  EXPECT_EQ(fourth[0].measurer, kC);
  EXPECT_THAT(round(5, 5), IsEmpty());
  const std::vector<Candidate> sixth = round(6, 5);
  ASSERT_THAT(sixth, SizeIs(1));
  EXPECT_EQ(sixth[0].measurer, kA);
  EXPECT_THAT(round(7, 5), IsEmpty());
  EXPECT_THAT(round(8, 5), IsEmpty()) << "nobody measured since";
}

TEST(Cloud, GathersFinalistsAfterTheEnd) {
  Cloud cloud({.rounds = 1}, Ids(3));
  JoinAll(cloud, 3);
  for (const LearnerId id : Ids(3)) {
    ASSERT_TRUE(cloud.Receive(Says(1, Make(id, 1, id, 0.5, {1, 2}))));
  }
  ExpectRefused(cloud.Receive(FinalMessage{Make(kA, 1, kA, 0.5, {1, 2})}),
                "before the run is over");
  ASSERT_TRUE(cloud.Receive(CloseMessage{kA, 1, kC}));
  ASSERT_TRUE(cloud.Receive(CloseMessage{kB, 1, kB}));
  ASSERT_TRUE(cloud.Receive(CloseMessage{kC, 1, kC}));
  ASSERT_EQ(cloud.EndingAfter(1), Ending::kRounds);
  ExpectRefused(cloud.Receive(Says(2, Make(kA, 2, kA, 0.5, {1, 2}))), "the run is over");
  ASSERT_TRUE(cloud.Receive(FinalMessage{Make(kC, 1, kC, 0.25, {3, 8})}));
  ASSERT_TRUE(cloud.Receive(FinalMessage{Make(kB, 1, kB, 0.5, {9, 9})}));
  EXPECT_FALSE(cloud.FindFinalists());
  ASSERT_TRUE(cloud.Receive(FinalMessage{Make(kA, 1, kC, 0.75, {1, 2})}));
  ASSERT_TRUE(cloud.Receive(FinalMessage{Make(kA, 1, kC, 0.75, {1, 2})}));
  const auto finalists = cloud.FindFinalists();
  ASSERT_TRUE(finalists);
  ASSERT_THAT(finalists->finals, SizeIs(3));
  EXPECT_EQ(finalists->finals[0].learner, kA);
  EXPECT_EQ(finalists->finals[2].learner, kC);
  EXPECT_THAT(finalists->average, ElementsAre(2, 5));
  EXPECT_EQ(finalists->incumbent->learner, kA);
}

// From here on everybody races in parts: two learners, tasks as given, after their finals.
void FinishWith(Cloud& cloud, const std::string& task_a, const std::string& task_b) {
  ASSERT_TRUE(cloud.Receive(JoinMessage{kA, {1, 2}, task_a}));
  ASSERT_TRUE(cloud.Receive(JoinMessage{kB, {3, 4}, task_b}));
  for (const LearnerId id : Ids(2)) {
    ASSERT_TRUE(cloud.Receive(Says(1, Make(id, 1, id, 0.5, {1, 2}))));
  }
  CloseAll(cloud, 1, 2, kA);
  ExpectRefused(cloud.Receive(RaceMessage{kA, {{1, 1, 0}}}), "before the finalists are known");
  for (const LearnerId id : Ids(2)) {
    ASSERT_TRUE(cloud.Receive(FinalMessage{Make(id, 1, kA, 0.25, {3, 8})}));
  }
}

TEST(Cloud, GathersPartsOfTheRace) {
  const std::string task(64, 'a');
  Cloud cloud({.rounds = 1}, Ids(2), 77);
  FinishWith(cloud, task, task);
  EXPECT_EQ(cloud.round(), 1);
  EXPECT_THAT(cloud.FindFinalists()->racers, ElementsAre(kA, kB));
  EXPECT_EQ(cloud.FindFinalists()->seed, 77U);
  const RaceMessage part{kB, {{10, 4, std::int64_t{10} << 32}, {10, 10, 0}}};
  const auto spoiled = [&](const std::function<void(RaceMessage&)>& spoil) {
    RaceMessage message = part;
    spoil(message);
    return cloud.Receive(message);
  };
  const std::string before = ToBytes(cloud.state());
  const char* const contradict = "contradict each other";
  ExpectRefused(spoiled([](RaceMessage& m) { m.tallies[0].reached = 11; }), contradict);
  ExpectRefused(spoiled([](RaceMessage& m) { m.tallies[0].reached = -1; }), contradict);
  ExpectRefused(spoiled([](RaceMessage& m) { ++m.tallies[0].cost; }), contradict);
  ExpectRefused(spoiled([](RaceMessage& m) { m.tallies[1].cost = -1; }), contradict);
  ExpectRefused(spoiled([](RaceMessage& m) { m.tallies[1] = {Cloud::kMaxRaceEpisodes + 1, 0, 0}; }),
                contradict);
  ExpectRefused(spoiled([](RaceMessage& m) { m.tallies.clear(); }), "another number of policies");
  ExpectRefused(spoiled([](RaceMessage& m) { m.tallies.resize(5); }), "another number of policies");
  ExpectRefused(spoiled([](RaceMessage& m) { m.learner = kC; }), "not part of this run");
  EXPECT_EQ(ToBytes(cloud.state()), before);

  ASSERT_TRUE(cloud.Receive(part));
  EXPECT_FALSE(cloud.FindRaceAnswer());
  ExpectRefused(cloud.Receive(RaceMessage{kA, {{1, 1, 0}}}), "another number of policies");
  ASSERT_TRUE(cloud.Receive(RaceMessage{kA, {{5, 5, 0}, {5, 0, 0}}}));
  const std::string after = ToBytes(cloud.state());
  ASSERT_TRUE(cloud.Receive(part));
  ExpectRefused(spoiled([](RaceMessage& m) { m.tallies[0].cost = 0; }), "else than before");
  ASSERT_TRUE(cloud.Receive(FinalMessage{Make(kB, 1, kA, 0.25, {3, 8})}));
  EXPECT_EQ(ToBytes(cloud.state()), after);
  const std::optional<RaceAnswer> answer = cloud.FindRaceAnswer();
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->parts,
              ElementsAre(RacePart{kA, {{5, 5, 0}, {5, 0, 0}}}, RacePart{kB, part.tallies}));
  // What was said at the end is still said when everything is over.
  EXPECT_EQ(cloud.round(), 1);
  EXPECT_EQ(cloud.EndingAfter(1), Ending::kRounds);
  EXPECT_EQ(cloud.AnswerTo(1)->round, 1);
  EXPECT_TRUE(cloud.FindFinalists());
}

TEST(Cloud, LetsEverybodyRaceAtHomeIfTasksDiffer) {
  const std::string task(64, 'a');
  for (const std::string& other : {std::string(64, 'b'), std::string()}) {
    for (const bool other_first : {false, true}) {
      Cloud cloud({.rounds = 1}, Ids(2));
      FinishWith(cloud, other_first ? other : task, other_first ? task : other);
      EXPECT_THAT(cloud.FindFinalists()->racers, IsEmpty());
      ExpectRefused(cloud.Receive(RaceMessage{kA, {{1, 1, 0}}}), "tasks differ");
    }
  }
}

// A verdict on the incumbent makes the next record the incumbent.
TEST(Cloud, HeedsVerdicts) {
  Cloud cloud({}, Ids(2));
  JoinAll(cloud, 2);
  const Submission boast = Make(kA, 1, kA, 0, {1, 0});
  ASSERT_TRUE(cloud.Receive(Says(1, boast)));
  ASSERT_TRUE(cloud.Receive(Says(1, Make(kB, 1, kB, 0.5, {2, 0}))));
  EXPECT_EQ(cloud.AnswerTo(1)->incumbent->learner, kA);
  CloseAll(cloud, 1, 2, kA);
  RoundMessage message = Says(2, Make(kB, 2, kB, 0.75, {3, 0}));
  message.verdicts = {{kB, RankOf(boast)}};
  ASSERT_TRUE(cloud.Receive(message));
  ASSERT_TRUE(cloud.Receive(Says(2, Make(kA, 2, kA, 0.25, {4, 0}))));
  EXPECT_EQ(cloud.AnswerTo(2)->incumbent->learner, kB);
  EXPECT_EQ(cloud.AnswerTo(2)->incumbent->round, 1);
}

using Kind = ControlMessage::Kind;

// Two rounds in which learner 3 is silent, and everything about coming back.
class LeftOut : public ::testing::Test {
 protected:
  void Submit(int round, std::initializer_list<LearnerId> who) {
    for (const LearnerId id : who) {
      ASSERT_TRUE(cloud_.Receive(Says(round, Make(id, round, id, 0.5, {1, 2}), 10 * round)));
    }
  }
  void Close(int round, std::initializer_list<LearnerId> who,
             Outlook outlook = Outlook::kSearches) {
    for (const LearnerId id : who) {
      ASSERT_TRUE(cloud_.Receive(CloseMessage{id, round, id, outlook}));
    }
  }
  RoundMessage Late(int round) const { return Says(round, Make(kC, round, kC, 0.25, {9, 9}), 5); }
  // Round 1 is answered and closed without learner 3.
  void LeaveOutInRound1() {
    JoinAll(cloud_, 3);
    Submit(1, {kA, kB});
    EXPECT_THAT(cloud_.Silent(), ElementsAre(kC));
    ASSERT_TRUE(cloud_.Receive(ControlMessage{Kind::kLeftOut, kC}));
    ASSERT_TRUE(cloud_.AnswerTo(kA, 1));
    EXPECT_THAT(cloud_.AnswerTo(1)->participants, ElementsAre(kA, kB));
  }

  Cloud cloud_{{.rounds = 4, .patience = 1}, Ids(3)};
};

TEST_F(LeftOut, IsWaitedForNoMore) {
  LeaveOutInRound1();
  ExpectRefused(cloud_.Receive(ControlMessage{Kind::kLeftOut, kC}), "is not waited for");
  Close(1, {kA, kB});
  Submit(2, {kB, kA});
  Close(2, {kA, kB});
  EXPECT_EQ(cloud_.round(), 2);
}

TEST_F(LeftOut, ComesBackInTheRoundAfterTheOneItMissed) {
  LeaveOutInRound1();
  Close(1, {kA});
  // Its round is answered and not closed yet: it may close it with the others.
  EXPECT_TRUE(*cloud_.Receive(Late(1)));
  EXPECT_EQ(cloud_.AnswerTo(kC, 1)->round, 1);
  EXPECT_EQ(cloud_.AnswerTo(kC, 1)->incumbent->learner, kA) << "as everybody heard";
  Close(1, {kB});  // it is not awaited yet
  EXPECT_EQ(cloud_.round(), 1);
  EXPECT_TRUE(*cloud_.Receive(CloseMessage{kC, 1, kC}));
  EXPECT_EQ(cloud_.EndingAfter(kC, 1), Ending::kNotYet);
  Submit(2, {kA, kB});
  EXPECT_FALSE(cloud_.AnswerTo(kA, 2)) << "it is awaited again";
  EXPECT_THAT(cloud_.Silent(), ElementsAre(kC));
  Submit(2, {kC});
  EXPECT_EQ(cloud_.AnswerTo(kA, 2)->incumbent->learner, kC) << "what it knew counts";
}

TEST_F(LeftOut, GoesOnFromTheLastRoundThatIsClosed) {
  LeaveOutInRound1();
  Close(1, {kA, kB});
  Submit(2, {kA, kB});
  Close(2, {kA});
  EXPECT_TRUE(*cloud_.Receive(Late(1)));
  EXPECT_FALSE(cloud_.AnswerTo(kC, 1)) << "round 2 is being closed";
  Close(2, {kB});
  const std::optional<RoundAnswer> answer = cloud_.AnswerTo(kC, 1);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->round, 2);
  EXPECT_EQ(answer->ending, Ending::kNotYet);
  EXPECT_FALSE(*cloud_.Receive(Late(1)));
  EXPECT_FALSE(cloud_.NeedsAnotherAnswer(Late(1)));
  ExpectRefused(cloud_.Receive(Says(1, Make(kC, 1, kC, 0.5, {9, 9}))), "else than before");
  // It missed the answer, and the run went on without it once more.
  Submit(3, {kA, kB});
  ASSERT_TRUE(cloud_.Receive(ControlMessage{Kind::kLeftOut, kC}));
  Close(3, {kA, kB});
  EXPECT_FALSE(cloud_.AnswerTo(kC, 1));
  EXPECT_TRUE(cloud_.NeedsAnotherAnswer(Late(1)));
  ASSERT_TRUE(cloud_.Receive(ControlMessage{Kind::kAnsweredAgain, kC}));
  EXPECT_EQ(cloud_.AnswerTo(kC, 1)->round, 3);
  Submit(4, {kC, kA, kB});
  EXPECT_THAT(cloud_.AnswerTo(4)->participants, ElementsAre(kA, kB, kC));
}

TEST_F(LeftOut, ComesBackWhenEverythingIsOver) {
  LeaveOutInRound1();
  Close(1, {kA, kB}, Outlook::kSettled);
  EXPECT_EQ(cloud_.EndingAfter(1), Ending::kSettled) << "of those who are there";
  for (const LearnerId id : {kA, kB}) {
    ASSERT_TRUE(cloud_.Receive(FinalMessage{Make(id, 1, id, 0.5, {1, 2})}));
  }
  ASSERT_TRUE(cloud_.FindFinalists());
  const std::string finalists = ToBytes(*cloud_.FindFinalists());
  EXPECT_TRUE(*cloud_.Receive(Late(1)));
  EXPECT_EQ(cloud_.AnswerTo(kC, 1)->round, 1);
  EXPECT_TRUE(*cloud_.Receive(CloseMessage{kC, 1, kC}));
  EXPECT_EQ(cloud_.EndingAfter(kC, 1), Ending::kSettled);
  EXPECT_TRUE(*cloud_.Receive(FinalMessage{Make(kC, 1, kC, 0, {9, 9})}));
  EXPECT_EQ(ToBytes(*cloud_.FindFinalists()), finalists) << "too late to win";
}

TEST_F(LeftOut, JoinsLater) {
  ASSERT_TRUE(cloud_.Receive(JoinMessage{kB, {1, 2}}));
  EXPECT_THAT(cloud_.Silent(), ElementsAre(kA, kC));
  ASSERT_TRUE(cloud_.Receive(ControlMessage{Kind::kLeftOut, kA}));
  EXPECT_FALSE(cloud_.WelcomeOf(kB));
  ASSERT_TRUE(cloud_.Receive(ControlMessage{Kind::kLeftOut, kC}));
  ASSERT_TRUE(cloud_.WelcomeOf(kB));
  Submit(1, {kB});
  EXPECT_TRUE(*cloud_.Receive(JoinMessage{kC, {1, 2}}));
  EXPECT_FALSE(cloud_.WelcomeOf(kC)) << "round 1 is being closed";
  Close(1, {kB});
  EXPECT_EQ(cloud_.WelcomeOf(kC)->round, 1);
  EXPECT_EQ(cloud_.WelcomeOf(kC)->origin, kB) << "who begins alike";
  EXPECT_EQ(cloud_.WelcomeOf(kB)->round, 0);
  EXPECT_FALSE(cloud_.WelcomeOf(kA));
  Submit(2, {kB});
  EXPECT_FALSE(cloud_.AnswerTo(kB, 2));
  Submit(2, {kC});
  EXPECT_TRUE(cloud_.AnswerTo(kB, 2));
}

// Learner 2 adopts in round 1 and rests; learner 1 searches on.
class Resting : public ::testing::Test {
 protected:
  explicit Resting(const FederationOptions& options = {.rounds = 3}) : cloud_(options, Ids(2)) {}
  void SetUp() override {
    JoinAll(cloud_, 2);
    ASSERT_TRUE(cloud_.Receive(Says(1, Make(kB, 1, kB, 0.75, {2, 0}))));
    Search(1, 0.5);
  }
  // Its first round; or one that learner 1 has for itself.
  void Search(int round, double y) {
    const auto first = static_cast<float>(round);
    ASSERT_TRUE(cloud_.Receive(Says(round, Make(kA, round, kA, y, {first, 0}))));
    ASSERT_TRUE(cloud_.AnswerTo(kA, round)) << "nobody else is awaited";
    if (round == 1) {
      ASSERT_TRUE(cloud_.Receive(CloseMessage{kB, 1, kA, Outlook::kRests}));
    }
    ASSERT_TRUE(cloud_.Receive(CloseMessage{kA, round, kA}));
  }
  static RoundMessage Asks(int round) {
    RoundMessage message;
    message.learner = kB;
    message.round = round;
    return message;
  }

  Cloud cloud_;
};

TEST_F(Resting, HearsOfTheLastRoundWhenTheRunIsOver) {
  EXPECT_TRUE(cloud_.IsResting(kB));
  EXPECT_FALSE(cloud_.IsResting(kA));
  const std::string before = ToBytes(cloud_.state());
  EXPECT_FALSE(*cloud_.Receive(Asks(2)));
  EXPECT_EQ(ToBytes(cloud_.state()), before) << "a question changes nothing";
  Search(2, 0.25);
  EXPECT_FALSE(cloud_.AnswerTo(kB, 2)) << "not even of its own round";
  Search(3, 0.375);
  EXPECT_FALSE(*cloud_.Receive(Asks(2))) << "it may ask again, however late";
  const std::optional<RoundAnswer> answer = cloud_.AnswerTo(kB, 2);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->round, 3);
  EXPECT_EQ(answer->ending, Ending::kRounds);
  EXPECT_EQ(answer->incumbent->round, 2);
  // At the end it speaks as everybody does.
  EXPECT_THAT(cloud_.Silent(), ElementsAre(kA, kB));
  ASSERT_TRUE(cloud_.Receive(FinalMessage{Make(kB, 1, kA, 0.25, {2, 0})}));
  ASSERT_TRUE(cloud_.Receive(FinalMessage{Make(kA, 3, kA, 0.375, {3, 0})}));
  EXPECT_EQ(cloud_.FindFinalists()->average, (std::vector<float>{2.5, 0})) << "of one origin";
}

TEST_F(Resting, IsAnsweredThoughItForgotThatItDoes) {
  Search(2, 0.25);
  EXPECT_FALSE(*cloud_.Receive(Says(1, Make(kB, 1, kB, 0.75, {2, 0}))));
  EXPECT_FALSE(cloud_.AnswerTo(kB, 1));
  Search(3, 0.375);
  EXPECT_EQ(cloud_.AnswerTo(kB, 1)->round, 3);
}

TEST_F(Resting, SubmitsNothing) {
  ExpectRefused(cloud_.Receive(Says(2, Make(kB, 2, kA, 0, {2, 0}))), "rests");
  ExpectRefused(cloud_.Receive(Asks(3)), "rests");
}

TEST_F(Resting, IsNotAwaitedWhereTheRunGoesOnWithMoreRounds) {
  Search(2, 0.25);
  Search(3, 0.375);
  Cloud longer({.rounds = 5}, Ids(2));
  longer.set_state(cloud_.state());
  ASSERT_EQ(longer.EndingAfter(3), Ending::kNotYet);
  EXPECT_THAT(longer.Silent(), ElementsAre(kA));
}

class RestingAlone : public Resting {
 protected:
  RestingAlone() : Resting({.rounds = 9, .open = true}) {}
};

TEST_F(RestingAlone, EndsTheRun) {
  Search(2, 0.25);
  EXPECT_FALSE(*cloud_.Receive(Asks(2)));
  EXPECT_FALSE(cloud_.AnswerTo(kB, 2));
  ASSERT_TRUE(cloud_.Receive(LeaveMessage{kA}));
  const std::optional<RoundAnswer> answer = cloud_.AnswerTo(kB, 2);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->ending, Ending::kSettled);
  EXPECT_EQ(answer->incumbent->round, 2);
  ASSERT_TRUE(cloud_.Receive(FinalMessage{Make(kB, 1, kA, 0.25, {2, 0})}));
  EXPECT_TRUE(cloud_.FindFinalists());
}

TEST(Cloud, LetsLearnersJoinAndLeaveOnlyIfItIsOpen) {
  Cloud closed({.rounds = 3}, Ids(2));
  JoinAll(closed, 2);
  ExpectRefused(closed.Receive(JoinMessage{kC, {1, 2}}), "not part of this run");
  ExpectRefused(closed.Receive(LeaveMessage{kA}), "may not leave: the run is not open");

  Cloud cloud({.rounds = 1, .open = true}, Ids(2));
  JoinAll(cloud, 2);
  const LearnerId late(700);
  ExpectRefused(cloud.Receive(JoinMessage{LearnerId::Cloud(), {1, 2}}), "not part of this run");
  ExpectRefused(cloud.Receive(JoinMessage{late, {1, 2, 3}}), "another size");
  EXPECT_EQ(cloud.state().members.size(), 2U);
  EXPECT_TRUE(*cloud.Receive(JoinMessage{late, {1, 1}}));
  EXPECT_EQ(cloud.WelcomeOf(late)->origin, kB);
  for (const LearnerId id : {kA, late}) {
    ASSERT_TRUE(cloud.Receive(Says(1, Make(id, 1, id, 0.5, {1, 2}))));
  }
  EXPECT_TRUE(*cloud.Receive(LeaveMessage{kB}));
  EXPECT_FALSE(*cloud.Receive(LeaveMessage{kB}));
  EXPECT_THAT(cloud.AnswerTo(1)->participants, ElementsAre(kA, late));
  ExpectRefused(cloud.Receive(CloseMessage{kB, 1, kB}), "has left the run");
  for (const LearnerId id : {kA, late}) ASSERT_TRUE(cloud.Receive(CloseMessage{id, 1, id}));
  EXPECT_EQ(cloud.EndingAfter(1), Ending::kRounds);
  for (const LearnerId id : {kA, late}) {
    ASSERT_TRUE(cloud.Receive(FinalMessage{Make(id, 1, id, 0.5, {1, 2})}));
  }
  ExpectRefused(cloud.Receive(LeaveMessage{kA}), "the run is over");
  EXPECT_FALSE(*cloud.Receive(LeaveMessage{kB}));
}

// A learner that comes with rounds to a Cloud that has forgotten them is told so.
TEST(Cloud, OfNobodyKnowsNoRounds) {
  Cloud cloud({.rounds = 3}, Ids(2));
  ExpectRefused(cloud.Receive(Says(2, Make(kA, 2, kA, 0.5, {1, 2}))),
                "speaks of a round that has not begun");
}

TEST(Cloud, RefusesWhoIsRevokedAndGoesOnWithoutIt) {
  Cloud cloud({.rounds = 3}, Ids(2));
  JoinAll(cloud, 2);
  ASSERT_TRUE(cloud.Receive(Says(1, Make(kA, 1, kA, 0.5, {1, 2}))));
  ASSERT_TRUE(cloud.Receive(ControlMessage{Kind::kRevoked, kB}));
  EXPECT_TRUE(cloud.AnswerTo(1));
  ExpectRefused(cloud.Receive(Says(1, Make(kB, 1, kB, 0.5, {1, 2}))), "is revoked");
  ExpectRefused(cloud.Receive(ControlMessage{Kind::kRevoked, kC}), "not part of this run");
  ASSERT_TRUE(cloud.Receive(CloseMessage{kA, 1, kA}));
  EXPECT_EQ(cloud.round(), 1);
}

// A racer that is gone: its part is missing, and the race is over all the same.
TEST(Cloud, RacesWithoutWhoIsGone) {
  const std::string task(64, 'a');
  Cloud cloud({.rounds = 1, .patience = 1}, Ids(2));
  FinishWith(cloud, task, task);
  ASSERT_TRUE(cloud.Receive(RaceMessage{kA, {{5, 5, 0}}}));
  ASSERT_TRUE(cloud.Receive(ControlMessage{Kind::kLeftOut, kB}));
  EXPECT_THAT(cloud.FindRaceAnswer()->parts, ElementsAre(RacePart{kA, {{5, 5, 0}}}));
  EXPECT_TRUE(*cloud.Receive(RaceMessage{kB, {{7, 7, 0}}}));
  EXPECT_THAT(cloud.FindRaceAnswer()->parts, SizeIs(1));
}

// What the Cloud keeps of many learners and rounds: some hundred bytes each, no policy each.
TEST(Cloud, StaysSmallWithManyLearnersAndRounds) {
  constexpr std::uint32_t kLearners = 2000;
  constexpr std::size_t kParameters = 500;
  Cloud cloud({.rounds = 100, .average_every = 2}, Ids(kLearners));
  const auto theta_of = [](LearnerId id, int round) {
    std::vector<float> theta(kParameters, static_cast<float>(id.index()));
    theta[0] = static_cast<float>(round);
    return theta;
  };
  for (const LearnerId id : Ids(kLearners)) {
    ASSERT_TRUE(cloud.Receive(JoinMessage{id, theta_of(id, 0)}));
  }
  std::size_t first = 0;
  for (int round = 1; round <= 6; ++round) {
    for (const LearnerId id : Ids(kLearners)) {
      ASSERT_TRUE(cloud.Receive(Says(round, Make(id, round, id, 0.5, theta_of(id, round)))));
    }
    CloseAll(cloud, round, kLearners, kA);
    const std::size_t size = ToBytes(cloud.state()).size();
    if (round == 2) first = size;
    EXPECT_LE(size, std::size_t{kLearners} * 400 + 20 * kParameters * sizeof(float)) << round;
    if (round > 2) {
      EXPECT_LE(size, first + 10000) << round;
    }
  }
}

// What 10^5 learners cost, as the allocator counts, whatever the step.
TEST(Cloud, NeedsLessThanTwoHundredBytesForALearner) {
  static_assert(sizeof(Member) <= 112);
  constexpr std::uint32_t kLearners = 100'000;
  const auto allocated = [] {
    const struct mallinfo2 info = ::mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  const double before = allocated();
  double most = 0;
  {
    const std::vector<LearnerId> ids = Ids(kLearners);
    Cloud cloud({.rounds = 1}, ids);
    const auto everybody = [&](auto message_of) {
      for (const LearnerId id : ids) {
        ASSERT_TRUE(cloud.Receive(message_of(id)));
        if (id.index() % 1000 == 0) most = std::max(most, allocated() - before);
      }
    };
    const auto theta_of = [](LearnerId id) {
      return std::vector<float>{static_cast<float>(id.index()), 1};
    };
    everybody([&](LearnerId id) { return JoinMessage{id, theta_of(id), std::string(64, 'a')}; });
    everybody([&](LearnerId id) { return Says(1, Make(id, 1, id, 0.5, theta_of(id))); });
    everybody([&](LearnerId id) { return CloseMessage{id, 1, id}; });
    everybody([&](LearnerId id) { return FinalMessage{Make(id, 1, id, 0.5, theta_of(id))}; });
    EXPECT_THAT(cloud.FindFinalists()->racers, SizeIs(Cloud::kMaxRacers));
  }
  EXPECT_LT(most / kLearners, 200);
}

TEST(LocalExchange, SaysThatItHasNoOthersToWaitFor) {
  Cloud cloud({}, Ids(2));
  LocalExchange exchange(cloud);
  const JoinMessage alone[] = {{kA, {1, 2}}};
  const auto joined = exchange.Join(alone);
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().message, HasSubstr("live elsewhere"));
}

}  // namespace
}  // namespace fedgen
