// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/run_outcome.h"

#include <fmt/format.h>

#include <charconv>

#include "fedgen/base/hash.h"

namespace fedgen {
namespace {

constexpr std::string_view kHeader = "fedgen-outcome 1\n";
constexpr std::string_view kChecksum = "sha256 ";
constexpr int kMostLearners = 1000;

std::string TallyText(const Tally& tally) {
  return fmt::format(" {} {} {} {} {} {} {} {} {}", tally.episodes, tally.reached, tally.collided,
                     tally.timed_out, tally.steps, tally.cost_sum, tally.goal_distance_sum,
                     tally.arrival_time_sum, tally.outcome_hash);
}

// Numbers apart by spaces or newlines, one after the other; after the first that is none, nothing.
class Numbers {
 public:
  explicit Numbers(std::string_view text) : text_(text) {}

  template <typename T>
  void Read(T& value) {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) {
      text_.remove_prefix(1);
    }
    const char* begin = text_.data();  // NOLINT(bugprone-suspicious-stringview-data-usage)
    const auto [parsed_to, error] = std::from_chars(begin, begin + text_.size(), value);
    good_ = good_ && error == std::errc();
    text_.remove_prefix(good_ ? static_cast<std::size_t>(parsed_to - begin) : text_.size());
  }
  void Read(Tally& tally) {
    Read(tally.episodes);
    Read(tally.reached);
    Read(tally.collided);
    Read(tally.timed_out);
    Read(tally.steps);
    Read(tally.cost_sum);
    Read(tally.goal_distance_sum);
    Read(tally.arrival_time_sum);
    Read(tally.outcome_hash);
  }
  bool good() const { return good_; }

 private:
  std::string_view text_;
  bool good_ = true;
};

}  // namespace

int RunOutcome::adoptions() const {
  int sum = 0;
  for (const LearnerOutcome& learner : learners) sum += learner.adoptions;
  return sum;
}

bool IsStuck(const Tally& tally) { return 2 * tally.reached < tally.episodes; }

std::string RunOutcomeToText(const RunOutcome& outcome) {
  std::string text = std::string(kHeader);
  text += fmt::format("{} {} {} {} {}\n", outcome.rounds, outcome.episodes, outcome.seconds,
                      outcome.starts_per_world, outcome.learners.size());
  for (const LearnerOutcome& learner : outcome.learners) {
    text += fmt::format("{} {} {}", learner.bias, learner.first_stop, learner.adoptions);
    text += TallyText(learner.initial) + TallyText(learner.local) + TallyText(learner.final) + "\n";
  }
  text += TallyText(outcome.winner).substr(1) + "\n";
  return text + fmt::format("{}{}\n", kChecksum, Sha256Hex(text));
}

std::optional<RunOutcome> RunOutcomeFromText(std::string_view text) {
  if (!text.starts_with(kHeader)) return std::nullopt;
  Numbers numbers(text.substr(kHeader.size()));
  RunOutcome outcome;
  int num_learners = 0;
  numbers.Read(outcome.rounds);
  numbers.Read(outcome.episodes);
  numbers.Read(outcome.seconds);
  numbers.Read(outcome.starts_per_world);
  numbers.Read(num_learners);
  if (!numbers.good() || num_learners < 0 || num_learners > kMostLearners) return std::nullopt;
  outcome.learners.resize(static_cast<std::size_t>(num_learners));
  for (LearnerOutcome& learner : outcome.learners) {
    numbers.Read(learner.bias);
    numbers.Read(learner.first_stop);
    numbers.Read(learner.adoptions);
    numbers.Read(learner.initial);
    numbers.Read(learner.local);
    numbers.Read(learner.final);
  }
  numbers.Read(outcome.winner);
  // One spelling for each outcome: whatever was altered shows in the bytes, the checksum's too.
  if (!numbers.good() || RunOutcomeToText(outcome) != text) return std::nullopt;
  return outcome;
}

}  // namespace fedgen
