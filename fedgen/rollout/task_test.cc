// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "fedgen/base/hash.h"
#include "fedgen/rollout/evaluate.h"
#include "tests/tasks.h"

namespace fedgen {
namespace {

TEST(EpisodeOptions, AreThoseOfTheTasksAncestorByDefault) {
  const EpisodeOptions options;
  EXPECT_FALSE(Validate(options));
  EXPECT_EQ(options.time_step, 0.05);
  EXPECT_EQ(options.horizon, 150);
  EXPECT_EQ(options.cost_rate, 0.1);
}

TEST(Validate, NamesWhatIsWrongWithAnEpisode) {
  struct Case {
    std::function<void(EpisodeOptions&)> spoil;
    std::string field;
    std::string problem;
  };
  const std::vector<Case> cases = {
      {[](EpisodeOptions& o) { o.time_step = 0; }, "time_step", "0: must be in (0, 10]"},
      {[](EpisodeOptions& o) { o.time_step = std::nan(""); }, "time_step",
       "nan: must be in (0, 10]"},
      {[](EpisodeOptions& o) { o.time_step = 11; }, "time_step", "11: must be in (0, 10]"},
      {[](EpisodeOptions& o) { o.horizon = 0; }, "horizon", "0: must be in 1..1000000"},
      {[](EpisodeOptions& o) { o.horizon = 1000001; }, "horizon", "1000001: must be in 1..1000000"},
      {[](EpisodeOptions& o) { o.cost_rate = -0.1; }, "cost_rate", "-0.1: must be in (0, 100]"},
      {[](EpisodeOptions& o) { o.cost_rate = 101; }, "cost_rate", "101: must be in (0, 100]"},
  };
  for (const Case& c : cases) {
    EpisodeOptions options;
    c.spoil(options);
    const std::optional<FieldError> error = Validate(options);
    ASSERT_TRUE(error) << c.field << " = " << c.problem;
    EXPECT_EQ(error->field, c.field);
    EXPECT_EQ(error->problem, c.problem);
  }
}

// One change per number: each makes another text, and no two the same.
TEST(CanonicalTaskV1, TellsApartTasksThatDifferInAnyNumber) {
  Task original;
  original.world.walls = {{0, 1, 2, 3}};
  original.world.boxes = {{0, 1, 2, 3, 4}};
  original.world.discs = {{0, 1, 2}};
  std::vector<std::function<void(Task&)>> changes;
  const auto number = [&changes](auto pick) {
    changes.push_back([pick](Task& t) { pick(t) = std::nextafter(pick(t), 1e9); });
  };
  const auto integer = [&changes](auto pick) { changes.push_back([pick](Task& t) { ++pick(t); }); };
  const auto both = [&](auto pick) {
    number([pick](Task& t) -> double& { return pick(t).low; });
    number([pick](Task& t) -> double& { return pick(t).high; });
  };
  const auto both_counts = [&](auto pick) {
    integer([pick](Task& t) -> int& { return pick(t).low; });
    integer([pick](Task& t) -> int& { return pick(t).high; });
  };
  for (std::size_t at = 0; at < 4; ++at) {
    number([at](Task& t) -> double& { return t.world.walls[0][at]; });
  }
  for (std::size_t at = 0; at < 5; ++at) {
    number([at](Task& t) -> double& { return t.world.boxes[0][at]; });
  }
  for (std::size_t at = 0; at < 3; ++at) {
    number([at](Task& t) -> double& { return t.world.discs[0][at]; });
    number([at](Task& t) -> double& { return t.world.disturbance.gain[at]; });
  }
  changes.emplace_back([](Task& t) { t.world.walls.push_back({0, 0, 0, 0}); });
  changes.emplace_back([](Task& t) { t.world.boxes.push_back({0, 0, 0, 0, 0}); });
  changes.emplace_back([](Task& t) { t.world.discs.push_back({0, 0, 0}); });
  both_counts([](Task& t) -> CountInterval& { return t.world.random_discs.count; });
  both([](Task& t) -> Interval& { return t.world.random_discs.x; });
  both([](Task& t) -> Interval& { return t.world.random_discs.y; });
  both([](Task& t) -> Interval& { return t.world.random_discs.radius; });
  both_counts([](Task& t) -> CountInterval& { return t.world.random_boxes.count; });
  both([](Task& t) -> Interval& { return t.world.random_boxes.x; });
  both([](Task& t) -> Interval& { return t.world.random_boxes.y; });
  both([](Task& t) -> Interval& { return t.world.random_boxes.half_x; });
  both([](Task& t) -> Interval& { return t.world.random_boxes.half_y; });
  both([](Task& t) -> Interval& { return t.world.random_boxes.heading_degrees; });
  changes.emplace_back([](Task& t) { t.world.goal.kind = Goal::Kind::kDisc; });
  number([](Task& t) -> double& { return t.world.goal.normal[0]; });
  number([](Task& t) -> double& { return t.world.goal.normal[1]; });
  both([](Task& t) -> Interval& { return t.world.goal.offset; });
  both([](Task& t) -> Interval& { return t.world.goal.x; });
  both([](Task& t) -> Interval& { return t.world.goal.y; });
  both([](Task& t) -> Interval& { return t.world.goal.radius; });
  number([](Task& t) -> double& { return t.world.goal.depth; });
  both([](Task& t) -> Interval& { return t.world.start.x; });
  both([](Task& t) -> Interval& { return t.world.start.y; });
  both([](Task& t) -> Interval& { return t.world.start.heading_degrees; });
  integer([](Task& t) -> int& { return t.world.start.per_world; });
  number([](Task& t) -> double& { return t.world.start.clearance; });
  changes.emplace_back(
      [](Task& t) { t.world.disturbance.kind = Disturbance::Kind::kUniformNoise; });
  changes.emplace_back([](Task& t) { t.world.disturbance.kind = Disturbance::Kind::kVonKarman; });
  number([](Task& t) -> double& { return t.world.disturbance.intensity; });
  number([](Task& t) -> double& { return t.world.disturbance.length_scale; });
  number([](Task& t) -> double& { return t.world.disturbance.shortest_wavelength; });
  integer([](Task& t) -> int& { return t.world.disturbance.modes; });
  number([](Task& t) -> double& { return t.world.disturbance.half_width; });
  changes.emplace_back([](Task& t) { t.robot.kind = RobotOptions::Kind::kDifferential; });
  number([](Task& t) -> double& { return t.robot.speed; });
  number([](Task& t) -> double& { return t.robot.radius; });
  number([](Task& t) -> double& { return t.robot.length; });
  number([](Task& t) -> double& { return t.robot.steering_limit_degrees; });
  number([](Task& t) -> double& { return t.robot.turn_rate_limit; });
  integer([](Task& t) -> int& { return t.lidar.beams; });
  number([](Task& t) -> double& { return t.lidar.range; });
  number([](Task& t) -> double& { return t.lidar.from_degrees; });
  number([](Task& t) -> double& { return t.lidar.to_degrees; });
  number([](Task& t) -> double& { return t.episode.time_step; });
  integer([](Task& t) -> int& { return t.episode.horizon; });
  number([](Task& t) -> double& { return t.episode.cost_rate; });
  changes.emplace_back([](Task& t) { t.episode.clock = EpisodeOptions::Clock::kStepIndex; });

  std::set<std::string> texts = {CanonicalTaskV1(original)};
  for (std::size_t index = 0; index < changes.size(); ++index) {
    Task changed = original;
    changes[index](changed);
    EXPECT_TRUE(texts.insert(CanonicalTaskV1(changed)).second) << "change " << index;
  }
}

// Taken from the program before options were described once: certificates name tasks by these.
TEST(CanonicalTaskV1, IsWhatOldCertificatesHash) {
  EXPECT_EQ(Sha256Hex(CanonicalTaskV1(Task{})),
            "b09b3a4f8db090ee0acaee6f98f7ae16e8c04416a632263ec59cd77dc0df9548");
  EXPECT_EQ(Sha256Hex(CanonicalTaskV1(TextTask())),
            "e9759079f23badcf77cdc946de5be60d2193f761c4a65aee463fd573a3d89aea");
  EXPECT_EQ(Sha256Hex(CanonicalTaskV1(TablesTask())),
            "07242bcb556dce5adfbf899b95985aa28a1c35f4508fdb9bfe3abfa01cea2095");
  EXPECT_EQ(CanonicalTaskV1(MixedTask()), R"(fedgen-task 1
world.walls.size=3
world.walls[0]=-5,0,-5,10
world.walls[1]=5,0,5,10
world.walls[2]=-5,0,5,0
world.boxes.size=1
world.boxes[0]=-2,6,0.4,0.2,30
world.discs.size=1
world.discs[0]=0,4,0.3
world.random_discs.count=0,40
world.random_discs.x=-5,5
world.random_discs.y=2,10
world.random_discs.radius=0.1,0.25
world.random_boxes.count=0,4
world.random_boxes.x=-4,4
world.random_boxes.y=3,8
world.random_boxes.half_x=0.1,0.4
world.random_boxes.half_y=0.1,0.4
world.random_boxes.heading_degrees=0,180
world.goal.kind=1
world.goal.normal=0,1
world.goal.offset=10,10
world.goal.x=-3,3
world.goal.y=9,9
world.goal.radius=0.6,0.8
world.goal.depth=0
world.start.x=-4,4
world.start.y=0.5,2
world.start.heading_degrees=45,135
world.start.per_world=3
world.start.clearance=0
world.disturbance.kind=1
world.disturbance.gain=1,0.5,-0.3
world.disturbance.intensity=0.115
world.disturbance.length_scale=1
world.disturbance.shortest_wavelength=0.25
world.disturbance.modes=32
world.disturbance.half_width=0.2
robot.kind=0
robot.speed=2.5
robot.radius=0.27
robot.length=0.08
robot.steering_limit_degrees=45
robot.turn_rate_limit=5
lidar.beams=33
lidar.range=4
lidar.from_degrees=-135
lidar.to_degrees=135
episode.time_step=0.05
episode.horizon=150
episode.cost_rate=0.1
episode.clock=0
)");
}

// The text is part of what certificates mean: it changes only together with its first line.
TEST(CanonicalTaskV1, SpellsNumbersAsBriefAsTheyReadBack) {
  Task task;
  task.world.walls = {{-4.9, 0, 1e-3, 10}};
  const std::string text = CanonicalTaskV1(task);
  EXPECT_EQ(text.substr(0, text.find("world.boxes")),
            "fedgen-task 1\nworld.walls.size=1\nworld.walls[0]=-4.9,0,0.001,10\n");
  EXPECT_NE(text.find("\nrobot.radius=0.27\n"), std::string::npos);
  EXPECT_NE(text.find("\nworld.random_discs.radius=0.1,0.25\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("episode.cost_rate=0.1\nepisode.clock=0\n"));
}

// Changes option number `target` of those a task has, if it is made of numbers: each by a share.
class Nudge : public PathVisitor {
 public:
  explicit Nudge(int target, double share = 0.03) : target_(target), share_(share) {}

  void Visit(const Option& option, const OptionField& field) override {
    if (seen_++ != target_) return;
    path = PathOf(option.name);
    if (!field.value || std::holds_alternative<std::string>(field.value->is)) return;
    OptionValue value = *field.value;
    Change(value);
    changed = !field.take(value);
  }

  std::string path;
  bool changed = false;
  int seen() const { return seen_; }

 private:
  void Change(OptionValue& value) const {
    if (auto* number = std::get_if<double>(&value.is)) {
      *number += share_ * (*number == 0 ? 1 : std::fabs(*number));
    } else if (auto* integer = std::get_if<std::int64_t>(&value.is)) {
      if (share_ > 0.01) *integer += *integer == 32 ? 8 : 1;  // modes are multiples of 8
    } else if (auto* list = std::get_if<OptionValue::List>(&value.is)) {
      for (OptionValue& entry : *list) Change(entry);
    }
  }

  int target_;
  double share_;
  int seen_ = 0;
};

// Everything that driving a task shows, to the last bit.
std::string Fingerprint(const Task& task) {
  EvaluateOptions options;
  options.num_worlds = 60;
  options.starts_per_world = task.world.start.per_world;
  options.kernel = BestKernel();
  const Tally tally =
      Evaluate(task, GapFollower{},
               DrawnWorlds(task, Key(3).Fork(Stream::kEvaluation), BestKernel()), options);
  return fmt::format("{} {} {}", tally.outcome_hash, tally.episodes, tally.cost_sum);
}

// The law of Eq. 42: the text holds what acts. Every option of five tasks is nudged; what the text
// leaves out must leave every episode as it was, and what it holds must act in one of the tasks.
TEST(CanonicalTask, CoversWhatActsAndNothingElse) {
  Task still = TablesTask();  // no push, no drawn obstacle
  still.world.disturbance.kind = Disturbance::Kind::kNone;
  still.world.random_discs.count = {0, 0};
  still.world.discs = {{0.5, 5, 0.4}};
  Task cautious = MixedTask();  // a clearance that acts
  cautious.world.start.clearance = 0.5;
  int inert = 0;
  std::map<std::string, bool> acts;
  for (Task task : {TextTask(), TablesTask(), MixedTask(), still, cautious}) {
    task.episode.horizon = 95;  // so that some time out
    const std::string text = CanonicalTask(task);
    const std::string driven = Fingerprint(task);
    for (int target = 0;; ++target) {
      Task changed = task;
      Nudge nudge(target);
      Describe(nudge, changed);
      if (target >= nudge.seen()) break;
      if (!nudge.changed || Validate(changed.world) || Validate(changed.lidar)) continue;
      const bool same_text = CanonicalTask(changed) == text;
      const bool acted = Fingerprint(changed) != driven;
      if (same_text) {
        EXPECT_FALSE(acted) << nudge.path << " draws no other worlds, but drives otherwise";
      } else {
        acts[nudge.path] |= acted;
      }
      inert += same_text ? 1 : 0;
    }
  }
  EXPECT_GT(inert, 30);
  EXPECT_GT(acts.size(), 30U);
  for (const auto& [path, acted] : acts) EXPECT_TRUE(acted) << path << " acts nowhere";
}

// Digits that no float holds draw no other worlds: a maker could try as many as they like.
TEST(CanonicalTask, LeavesOutDigitsThatNoFloatHolds) {
  for (const Task& task : {TextTask(), TablesTask(), MixedTask()}) {
    const std::string text = CanonicalTask(task);
    for (const double share : {1e-12, -1e-12, 1e-300}) {
      for (int target = 0;; ++target) {
        Task changed = task;
        Nudge nudge(target, share);
        Describe(nudge, changed);
        if (target >= nudge.seen()) break;
        EXPECT_EQ(CanonicalTask(changed), text) << nudge.path << " " << share;
      }
    }
    Task changed = task;
    if (task.world.start.x.low == 0) changed.world.start.x = {-0.0, -0.0};
    std::ranges::reverse(changed.world.walls);
    const auto twice = [](auto& obstacles) {
      if (!obstacles.empty()) obstacles.insert(obstacles.begin(), 1, obstacles.back());
    };
    twice(changed.world.walls);
    twice(changed.world.boxes);
    twice(changed.world.discs);
    EXPECT_EQ(CanonicalTask(changed), text);
    EXPECT_EQ(Fingerprint(changed), Fingerprint(task));
  }
}

// The case that redrew the worlds: a car does not read the turn rate of a differential drive.
TEST(CanonicalTask, LeavesOutWhatThisKindDoesNotRead) {
  Task car = TextTask();
  const std::string text = CanonicalTask(car);
  car.robot.turn_rate_limit = 7;
  car.world.goal.radius = {2, 3};
  car.world.goal.normal = {0, 5};
  car.world.disturbance.half_width = 1;
  car.world.start.clearance = 0.1;
  EXPECT_EQ(CanonicalTask(car), text);
  EXPECT_TRUE(text.starts_with("fedgen-task 2\nworld.walls.size=3\n"));
  EXPECT_EQ(text.find("turn_rate_limit"), std::string::npos);
  EXPECT_NE(text.find("\nrobot.length=0.08\n"), std::string::npos);
}

}  // namespace
}  // namespace fedgen
