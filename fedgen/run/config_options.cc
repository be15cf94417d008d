// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/config_options.h"

#include "fedgen/certify/bounds.h"
#include "fedgen/certify/ladder.h"
#include "fedgen/run/config.h"

namespace fedgen {
namespace {

constexpr NumberRange kHalfWidth = Closed(0, 10);
constexpr NumberRange kConfidence = Closed(1e-6, 1 - 1e-9);
static_assert(IsConfidence(kConfidence.low) && IsConfidence(kConfidence.high) &&
              !IsConfidence(0.999e-6) && !IsConfidence(1 - 0.999e-9));

void DescribePolicy(OptionVisitor& visitor, Config& config) {
  Describe(visitor, config.training.policy);
  visitor.Number(
      {"initial_half_width", "",
       "A new policy's weights are drawn between minus and plus this, times sqrt(3 / inputs "
       "of the layer)."},
      config.initial_half_width, kHalfWidth);
  visitor.Choice(
      {"normalisation", "",
       "How a new policy's inputs are scaled and shifted: not, or to mean 0 and standard "
       "deviation 1 as the built-in gap follower meets them. Frozen into the policy."},
      config.training.normalisation);
  visitor.Integer({"normalisation_worlds", "worlds", "In how many that is measured."},
                  config.training.normalisation_worlds, {1, 1000000});
  visitor.Text({"imitate", "",
                "Whom a new policy imitates before round 1: gap-follower, straight, or a policy "
                "file, relative to the configuration's file, of which the run keeps a copy; empty "
                "for nobody (Eq. 52)."},
               config.imitate);
  visitor.Integer({"imitation_episodes", "episodes",
                   "How many a learner drives for that; the teacher drives in a third of them. "
                   "They do not count as training."},
                  config.training.imitation.episodes, {3, 1000000});
  visitor.Integer(
      {"imitation_epochs", "", "Passes over what was seen, after each of the three lessons."},
      config.training.imitation.epochs, {1, 10000});
}

void Describe(OptionVisitor& visitor, FederationOptions& options) {
  auto& [algorithm, rounds, episodes, average_every, patience, async, open] = options;
  visitor.Choice(
      {"algorithm", "",
       "Algorithm 1 (fedgen), or what it is compared with: nobody talks (local), everybody "
       "goes on from the mean (fedavg), one learner has everybody's worlds and directions "
       "(centralized), the first learner has everybody's directions but its own worlds (single). "
       "Only fedgen stops learners and takes stock."},
      algorithm);
  visitor.Integer({"rounds", "", "How many are run at most, K."}, rounds, {1, 10000000});
  visitor.Integer(
      {"episodes", "", "The run ends when this many were driven in training; 0 for no limit."},
      episodes, {0, 1'000'000'000'000'000});
  visitor.Integer(
      {"average_every", "rounds",
       "How often the mean of the policies of one origin is tried as one more candidate, "
       "measured by a learner; 0 for never."},
      average_every, {0, 10000000});
  visitor.Number(
      {"patience", "s",
       "In a federation: how long a step of a round waits for who is silent, who is then "
       "left out and may come back; 0 for ever. Learners in one process are never silent."},
      patience, Closed(0, 1e6));
  visitor.Flag({"async", "",
                "In a federation: whether everybody has rounds of its own and is answered at once "
                "with the best policy so far. For fedgen and local, without average_every."},
               async);
  visitor.Flag({"open", "", "In a federation: whether learners may join later, and leave."}, open);
}

void DescribeFederation(OptionVisitor& visitor, Config& config) {
  visitor.Integer({"learners", "", "How many learn together."}, config.num_learners,
                  {1, kMaxLearners});
  Describe(visitor, config.training.federation);
  visitor.Number({"gamma", "",
                  "The probability that a learner's error bound b fails (Eq. 18): smaller is more "
                  "careful, and adopts later."},
                 config.training.gamma, Open(0, 1));
  visitor.Integer(
      {"track_every", "rounds",
       "How often every policy is tested on worlds that nobody learns from (truth.csv); 0 "
       "for never.",
       Owner::kHost},
      config.track_every, {0, 10000000});
  visitor.Number({"track_growth", "",
                  "How many times as late the next such test comes at least, as "
                  "learner.stock_growth.",
                  Owner::kHost},
                 config.track_growth, Closed(1, 100));
  visitor.Integer({"track_worlds", "worlds", "How many such a test takes.", Owner::kHost},
                  config.track_worlds, {1, 100000000});
  visitor.Integer(
      {"selection_worlds", "worlds",
       "On how many fresh ones the final policies race: the best one wins and is certified."},
      config.selection_worlds, {1, 1000000000});
  visitor.Choice({"prize", "",
                  "Which policy wins that race: the least mean cost J, or the most safe arrivals."},
                 config.prize);
  visitor.Integer(
      {"certificate_worlds", "worlds",
       "On how many further ones the winner is certified: 1 or 3 times a power of ten (Eq. 41).",
       Owner::kHost},
      config.certificate_worlds, {kLadder.front().worlds, kMaxCertificateWorlds});
  visitor.Number({"confidence", "",
                  "Every certificate has a line at 0.99. Another confidence adds a second line, "
                  "marked as the maker's choice.",
                  Owner::kHost},
                 config.confidence, kConfidence);
}

}  // namespace

void Describe(OptionVisitor& visitor, LearnerSettings& settings) {
  auto& [own_world, worlds, starts, cost, estimator, policy_gradient, sigma, bias, step, optimizer,
         stop, sigma_rate, sigma_step, stock_every, stock_growth, stock_worlds, rest,
         initial_half_width, initial_policy] = settings;
  visitor.Integer({"worlds", "", "How many fresh worlds it drives through in a round, n_E."},
                  worlds, {1, 1000000});
  visitor.Integer({"starts", "",
                   "From how many starts in each of them, n_int; 0 for "
                   "world.start.per_world."},
                  starts, {0, 10000});
  Describe(visitor, cost);
  Describe(visitor, estimator);
  // What is less is lost next to mu, in float.
  visitor.Number({"sigma", "",
                  "How far the search looks around the policy: the standard deviation of "
                  "the random changes to its parameters."},
                 sigma, Closed(1e-6, 1e3));
  visitor.Number({"sigma_rate", "",
                  "How fast sigma itself is learned: its step against that of the policy; 0 "
                  "keeps sigma, 1 is the paper's."},
                 sigma_rate, Closed(0, 1e6));
  visitor.Choice({"sigma_step", "",
                  "How sigma is learned: by small factors near where it began (Eq. 20), or as the "
                  "paper prints it, down its gradient without a limit (additive, Eq. 20a); what "
                  "falls below 0 goes on as its absolute value."},
                 sigma_step);
  visitor.NumberOrChoice({"bias", "",
                          "The error bound b of a measured cost: from the number of worlds n_E, "
                          "from n_E n_int as the paper prints, or given (Eq. 18)."},
                         bias.given, Above(0, 1e6), bias.kind);
  Describe(visitor, optimizer);
  Describe(visitor, step);
  Describe(visitor, stop);
  visitor.Integer(
      {"stock_every", "rounds",
       "How often it takes stock: measures its policy on many worlds at once, so that it "
       "can be compared sharply and adopt a better one without having stopped; 0 for never "
       "(Eq. 43)."},
      stock_every, {0, 1000000});
  visitor.Number({"stock_growth", "",
                  "How many times as late the next stock is taken at least: 1 keeps to "
                  "stock_every; with 1.25 pauses grow with the round's number (Eq. 43)."},
                 stock_growth, Closed(1, 100));
  visitor.Integer({"stock_worlds", "worlds", "How many that takes."}, stock_worlds, {2, 100000000});
  visitor.Flag({"rest", "",
                "Whether a learner that has adopted another's policy rests: holds the "
                "best known policy from then on and searches no more (Eq. 43). Not with "
                "federation.average_every."},
               rest);
  visitor.Enter("policy_gradient", Owner::kLearner);
  Describe(visitor, policy_gradient);
  visitor.Leave();
}

void DescribeBeginning(OptionVisitor& visitor, LearnerSettings& settings, std::string& policy) {
  visitor.Number({"initial_half_width", "", "policy.initial_half_width of its own first policy."},
                 settings.initial_half_width, kHalfWidth);
  visitor.Text({"initial_policy", "",
                "A policy file to begin with, relative to the configuration's file; the run keeps "
                "a copy."},
               policy);
}

void Describe(OptionVisitor& visitor, Config& config) {
  Describe(visitor, config.training.task);
  visitor.Enter("policy");
  DescribePolicy(visitor, config);
  visitor.Leave();
  visitor.Enter("federation");
  DescribeFederation(visitor, config);
  visitor.Leave();
  visitor.Enter("learner", Owner::kLearner);
  Describe(visitor, config.learner);
  visitor.Leave();
}

}  // namespace fedgen
