// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "bench/cloud_bench.h"
#include "bench/stopwatch.h"
#include "fedgen/federation/served_run.h"

namespace fedgen {
namespace {

constexpr double kAim = 200;  // bytes a learner
constexpr int kRounds = 2;

// What this process has asked for and not given back, in bytes.
std::int64_t Allocated() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

ServedSettings SettingsOf(std::uint32_t learners, std::uint64_t num_parameters) {
  ServedSettings settings;
  settings.run = "state";
  settings.options.rounds = 1000;
  for (std::uint32_t index = 0; index < learners; ++index) settings.learners.emplace_back(index);
  settings.num_parameters = num_parameters;
  return settings;
}

// Everybody says what the run is waiting for: join, then rounds. `after_step` is called when the
// last of a step was heard, which takes the next.
Result<void> Talk(std::uint32_t learners, std::uint64_t num_parameters,
                  const std::function<Result<void>(const StepMessage&)>& hear,
                  const std::function<void()>& before_last) {
  const std::vector<float> theta(num_parameters, 0.25F);
  const auto step = [&](StepMessage message, const auto& set) -> Result<void> {
    for (std::uint32_t index = 0; index < learners; ++index) {
      set(message, LearnerId(index));
      if (index + 1 == learners) before_last();
      FEDGEN_TRY(hear(message));
    }
    return {};
  };
  FEDGEN_TRY(step(JoinMessage{{}, theta}, [](StepMessage& message, LearnerId id) {
    std::get<JoinMessage>(message).learner = id;
  }));
  for (int round = 1; round <= kRounds; ++round) {
    RoundMessage submit;
    submit.round = round;
    submit.submission = Submission{{}, round, {}, 0.5, 0.01, theta, HashOf(theta)};
    FEDGEN_TRY(step(submit, [](StepMessage& message, LearnerId id) {
      auto& m = std::get<RoundMessage>(message);
      m.learner = m.submission->learner = id;
    }));
    FEDGEN_TRY(step(CloseMessage{{}, round, LearnerId(0)}, [](StepMessage& message, LearnerId id) {
      std::get<CloseMessage>(message).learner = id;
    }));
  }
  return {};
}

struct StateRow {
  double bytes = 0;    // a learner, at most
  double seconds = 0;  // a learner and round
};

Result<StateRow> MeasureState(std::uint32_t learners, std::uint64_t num_parameters) {
  const ServedSettings settings = SettingsOf(learners, num_parameters);
  const std::int64_t before = Allocated();
  Cloud cloud(settings.options, settings.learners);
  std::int64_t most = 0;
  const Stopwatch clock(Stopwatch::Kind::kThread);
  const auto hear = [&](const StepMessage& message) -> Result<void> {
    FEDGEN_TRY(Hear(message, cloud));
    return {};
  };
  FEDGEN_TRY(
      Talk(learners, num_parameters, hear, [&] { most = std::max(most, Allocated() - before); }));
  return StateRow{static_cast<double>(most) / learners, clock.Seconds() / learners / kRounds};
}

Result<StateRow> MeasureServed(std::uint32_t learners, std::uint64_t num_parameters,
                               const std::string& path) {
  const ServedSettings settings = SettingsOf(learners, num_parameters);
  const std::unique_ptr<Store> store = FEDGEN_TRY(OpenStore("sqlite:" + path));
  ServedRun run = FEDGEN_TRY(ServedRun::Open(settings, *store));
  const Stopwatch clock(Stopwatch::Kind::kWall);
  const auto hear = [&](const StepMessage& message) -> Result<void> {
    const bool due = FEDGEN_TRY(run.Hear(message)).has_value();  // a step is complete
    if (!due && !run.has_much_to_save()) return {};
    FEDGEN_TRY(run.Save());
    run.Tidy();
    return {};
  };
  FEDGEN_TRY(Talk(learners, num_parameters, hear, [] {}));
  FEDGEN_TRY(run.Save());
  return StateRow{static_cast<double>(std::filesystem::file_size(path)) / learners,
                  clock.Seconds() / learners / kRounds};
}

}  // namespace

Result<void> RunCloudStateBench(bool quick, const std::string& path) {
  constexpr std::uint64_t kParameters = 1361;
  ::mallopt(M_ARENA_MAX, 1);
  double bytes = 0;
  fmt::print(
      "state: simulated learners at the Cloud's state machine, join and {} rounds, {} floats\n",
      kRounds, kParameters);
  const std::vector<std::uint32_t> sizes =
      quick ? std::vector<std::uint32_t>{1000, 10'000}
            : std::vector<std::uint32_t>{1000, 10'000, 100'000, 1'000'000};
  for (const std::uint32_t learners : sizes) {
    const StateRow row = FEDGEN_TRY(MeasureState(learners, kParameters));
    fmt::print("  {:>8} learners   {:>5.1f} us a learner and round   {:>6.0f} bytes a learner\n",
               learners, 1e6 * row.seconds, row.bytes);
    std::fflush(stdout);
    bytes = row.bytes;
  }
  fmt::print("the aim is at most {:.0f} bytes for each of very many: {}\n", kAim,
             bytes <= kAim ? "reached" : "missed");
  fmt::print("the same with the store, which is written to as a Cloud does\n");
  for (const std::uint32_t learners : sizes) {
    if (learners > 100'000) break;
    const StateRow row =
        FEDGEN_TRY(MeasureServed(learners, kParameters, fmt::format("{}.{}", path, learners)));
    fmt::print(
        "  {:>8} learners   {:>5.1f} us a learner and round   {:>6.0f} bytes of file a learner\n",
        learners, 1e6 * row.seconds, row.bytes);
    std::fflush(stdout);
  }
  return {};
}

}  // namespace fedgen
