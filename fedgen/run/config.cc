// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr std::size_t kLongestMessage = 1000;

// A value as a person wrote it, short enough for one line.
std::string Shown(const toml::node& node) {
  std::ostringstream stream;
  if (const auto* table = node.as_table()) {
    stream << (table->empty() ? "{}" : "{...}");
  } else {
    node.visit([&](const auto& typed) { stream << typed; });
  }
  std::string text = stream.str();
  constexpr std::size_t kLongest = 60;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

// What a pass over the file has found so far: the first problem, and where each key stood.
class Reading {
 public:
  explicit Reading(std::string name) : name_(std::move(name)) {}

  void Saw(const std::string& key, const toml::node& node) {
    lines_[key] = static_cast<int>(node.source().begin.line);
  }
  void Fail(const std::string& key, const std::string& problem) {
    if (!error_)
      error_ = Error{ErrorCode::kConfig, Where(key) + Printable(key + problem, kLongestMessage)};
  }
  const std::optional<Error>& error() const { return error_; }

  static constexpr const char* kOverride = "--set";

 private:
  // "file:12: " for the key or for the nearest key above it. What --set brought has no line.
  std::string Where(std::string key) const {
    while (true) {
      if (const auto found = lines_.find(key); found != lines_.end()) {
        return found->second > 0 ? fmt::format("{}:{}: ", name_, found->second)
                                 : fmt::format("{}: ", kOverride);
      }
      const std::size_t cut = key.find_last_of(".[");
      if (cut == std::string::npos) return name_ + ": ";
      key.resize(cut);
    }
  }

  std::string name_;
  std::map<std::string, int> lines_;
  std::optional<Error> error_;
};

// One table of the file. Each method reads one key into its field if the key is there, and writes
// down what the field then is; Finish() complains about keys that no method asked for.
class Section {
 public:
  Section(const toml::table* table, std::string path, Reading& reading, toml::table& resolved)
      : table_(table), path_(std::move(path)), reading_(reading), resolved_(&resolved) {}

  void Number(const std::string& key, double& field) {
    if (const toml::node* node = Find(key)) {
      if (const auto value = AsNumber(*node)) {
        field = *value;
      } else {
        Wrong(key, *node, "must be a number");
      }
    }
    Put(key, field);
  }

  /// A number, which makes the kind `numeric`, or one of some words, each a kind of its own.
  template <typename Enum>
  void NumberOrWord(const std::string& key, double& field, Enum& kind, Enum numeric,
                    const std::vector<std::pair<std::string, Enum>>& words) {
    if (const toml::node* node = Find(key)) {
      std::vector<std::string> names;
      bool known = false;
      for (const auto& [name, value] : words) {
        names.push_back(name);
        const auto* text = node->as_string();
        if (text != nullptr && text->get() == name) {
          kind = value;
          known = true;
        }
      }
      if (const auto value = AsNumber(*node)) {
        field = *value;
        kind = numeric;
        known = true;
      }
      if (!known) Wrong(key, *node, fmt::format("must be a number or {}", fmt::join(names, ", ")));
    }
    for (const auto& [name, value] : words) {
      if (kind == value) return Put(key, name);
    }
    Put(key, field);
  }

  void Text(const std::string& key, std::string& field) {
    if (const toml::node* node = Find(key)) {
      if (const auto* value = node->as_string()) {
        field = value->get();
      } else {
        Wrong(key, *node, "must be a text");
      }
    }
    if (!field.empty()) Put(key, field);
  }

  void Integer(const std::string& key, int& field) {
    if (const toml::node* node = Find(key)) {
      if (const auto value = AsInteger(*node)) {
        field = *value;
      } else {
        Wrong(key, *node, "must be an integer");
      }
    }
    Put(key, std::int64_t{field});
  }

  void Integer(const std::string& key, std::int64_t& field) {
    if (const toml::node* node = Find(key)) {
      if (const auto* value = node->as_integer()) {
        field = value->get();
      } else {
        Wrong(key, *node, "must be an integer");
      }
    }
    Put(key, field);
  }

  void Flag(const std::string& key, bool& field) {
    if (const toml::node* node = Find(key)) {
      if (const auto* value = node->as_boolean()) {
        field = value->get();
      } else {
        Wrong(key, *node, "must be true or false");
      }
    }
    Put(key, field);
  }

  template <typename Enum>
  void Choice(const std::string& key, Enum& field,
              const std::vector<std::pair<std::string, Enum>>& choices) {
    if (const toml::node* node = Find(key)) {
      std::vector<std::string> names;
      bool known = false;
      for (const auto& [name, value] : choices) {
        names.push_back(name);
        const auto* text = node->as_string();
        if (text == nullptr || text->get() != name) continue;
        field = value;
        known = true;
      }
      if (!known) Wrong(key, *node, fmt::format("must be one of {}", fmt::join(names, ", ")));
    }
    if constexpr (std::is_enum_v<Enum>) {
      for (const auto& [name, value] : choices) {
        if (field == value) Put(key, name);
      }
    }
  }

  /// A number, or [low, high].
  void Range(const std::string& key, Interval& field) {
    if (const toml::node* node = Find(key)) {
      if (const auto value = AsNumber(*node)) {
        field = {*value, *value};
      } else if (const auto pair = AsNumbers<2>(*node)) {
        field = {(*pair)[0], (*pair)[1]};
      } else {
        Wrong(key, *node, "must be a number or [low, high]");
      }
    }
    if (field.low == field.high) return Put(key, field.low);
    Put(key, toml::array{field.low, field.high});
  }

  /// An integer, or [low, high].
  void Range(const std::string& key, CountInterval& field) {
    if (const toml::node* node = Find(key)) {
      const toml::array* array = node->as_array();
      const bool pair = array != nullptr && array->size() == 2;
      const auto low = AsInteger(pair ? *array->get(0) : *node);
      const auto high = AsInteger(pair ? *array->get(1) : *node);
      if (low && high) {
        field = {*low, *high};
      } else {
        Wrong(key, *node, "must be an integer or [low, high]");
      }
    }
    Put(key, toml::array{std::int64_t{field.low}, std::int64_t{field.high}});
  }

  template <std::size_t N>
  void Numbers(const std::string& key, std::array<double, N>& field) {
    if (const toml::node* node = Find(key)) {
      if (const auto values = AsNumbers<N>(*node)) {
        field = *values;
      } else {
        Wrong(key, *node, fmt::format("must be {} numbers", N));
      }
    }
    Put(key, ArrayOf(field));
  }

  /// A list of rows of N numbers each.
  template <std::size_t N>
  void Rows(const std::string& key, std::vector<std::array<double, N>>& field,
            const char* columns) {
    if (const toml::node* node = Find(key)) ReadRows(key, *node, field, columns);
    toml::array written;
    for (const auto& row : field) written.push_back(ArrayOf(row));
    Put(key, written);
  }

  void Sizes(const std::string& key, std::vector<int>& field) {
    if (const toml::node* node = Find(key)) {
      const toml::array* array = node->as_array();
      std::vector<int> sizes;
      for (std::size_t index = 0; array != nullptr && index < array->size(); ++index) {
        if (const auto size = AsInteger(*array->get(index))) sizes.push_back(*size);
      }
      if (array == nullptr || sizes.size() != array->size()) {
        Wrong(key, *node, "must be a list of integers");
      } else {
        field = sizes;
      }
    }
    Put(key, ArrayOf(field));
  }

  Section Table(const std::string& key) {
    const toml::node* node = Find(key);
    const toml::table* table = node == nullptr ? nullptr : node->as_table();
    if (node != nullptr && table == nullptr) Wrong(key, *node, "must be a table");
    Put(key, toml::table{});
    return {table, Full(key), reading_, *resolved_->get_as<toml::table>(key)};
  }

  /// A list of at most max_size tables, one section each.
  std::vector<Section> Tables(const std::string& key, std::size_t max_size) {
    std::vector<Section> sections;
    const toml::node* node = Find(key);
    if (node == nullptr) return sections;
    const toml::array* array = node->as_array();
    if (array == nullptr || array->size() > max_size) {
      Wrong(key, *node, fmt::format("must be a list of at most {} tables", max_size));
      return sections;
    }
    Put(key, toml::array{});
    toml::array& written = *resolved_->get_as<toml::array>(key);
    for (std::size_t index = 0; index < array->size(); ++index) written.push_back(toml::table{});
    for (std::size_t index = 0; index < array->size(); ++index) {
      const toml::node& element = *array->get(index);
      const std::string name = fmt::format("{}[{}]", key, index);
      reading_.Saw(Full(name), element);
      if (!element.is_table()) {
        Wrong(name, element, "must be a table");
        break;
      }
      sections.emplace_back(element.as_table(), Full(name), reading_, *written[index].as_table());
    }
    return sections;
  }

  /// A key that may be there but was not read.
  void Known(const std::string& key) { asked_.push_back(key); }

  void Within(const std::string& key, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high)
      Fail(key, fmt::format("{}: must be in {}..{}", value, low, high));
  }

  bool Has(const std::string& key) const { return table_ != nullptr && table_->contains(key); }

  /// Reports a broken rule found by a Validate() of the room this section configures.
  void Check(const std::optional<FieldError>& problem) {
    if (problem) reading_.Fail(Full(problem->field), " = " + problem->problem);
  }
  void Fail(const std::string& key, const std::string& problem) {
    reading_.Fail(Full(key), " = " + problem);
  }

  /// Call after every key has been asked for.
  void Finish() {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : *table_) {
      const std::string name(key.str());
      if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
      reading_.Saw(Full(name), node);
      reading_.Fail(Full(name.substr(0, 60)), fmt::format(": unknown key, did you mean {}?",
                                                          Full(NearestName(name, asked_))));
    }
  }

 private:
  std::string Full(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  template <typename T>
  void Put(const std::string& key, const T& value) {
    resolved_->insert_or_assign(key, value);
  }

  template <typename Numbers>
  static toml::array ArrayOf(const Numbers& numbers) {
    toml::array array;
    for (const auto number : numbers) array.push_back(number);
    return array;
  }

  template <std::size_t N>
  void ReadRows(const std::string& key, const toml::node& node,
                std::vector<std::array<double, N>>& field, const char* columns) {
    const toml::array* rows = node.as_array();
    if (rows == nullptr) {
      Wrong(key, node, fmt::format("must be a list of [{}]", columns));
      return;
    }
    if (rows->size() > 1000) {
      Wrong(key, node, "must have at most 1000 rows");
      return;
    }
    field.clear();
    for (std::size_t row = 0; row < rows->size(); ++row) {
      const toml::node& element = *rows->get(row);
      const std::string name = fmt::format("{}[{}]", key, row);
      reading_.Saw(Full(name), element);
      const auto values = AsNumbers<N>(element);
      if (!values) {
        Wrong(name, element, fmt::format("must be [{}]", columns));
        return;
      }
      field.push_back(*values);
    }
  }

  const toml::node* Find(const std::string& key) {
    asked_.push_back(key);
    const toml::node* node = table_ == nullptr ? nullptr : table_->get(key);
    if (node != nullptr) reading_.Saw(Full(key), *node);
    return node;
  }

  void Wrong(const std::string& key, const toml::node& node, const std::string& rule) {
    reading_.Fail(Full(key), fmt::format(" = {}: {}", Shown(node), rule));
  }

  static std::optional<double> AsNumber(const toml::node& node) {
    if (const auto* value = node.as_floating_point()) return value->get();
    if (const auto* value = node.as_integer()) return static_cast<double>(value->get());
    return std::nullopt;
  }

  static std::optional<int> AsInteger(const toml::node& node) {
    const auto* value = node.as_integer();
    if (value == nullptr || value->get() < std::numeric_limits<int>::min() ||
        value->get() > std::numeric_limits<int>::max()) {
      return std::nullopt;
    }
    return static_cast<int>(value->get());
  }

  template <std::size_t N>
  static std::optional<std::array<double, N>> AsNumbers(const toml::node& node) {
    const toml::array* array = node.as_array();
    if (array == nullptr || array->size() != N) return std::nullopt;
    std::array<double, N> values{};
    for (std::size_t index = 0; index < N; ++index) {
      const auto value = AsNumber(*array->get(index));
      if (!value) return std::nullopt;
      values[index] = *value;
    }
    return values;
  }

  const toml::table* table_;
  std::string path_;
  Reading& reading_;
  toml::table* resolved_;
  std::vector<std::string> asked_;
};

void ReadWorld(Section world, WorldDistribution& d) {
  world.Rows<4>("walls", d.walls, "x0, y0, x1, y1");
  world.Rows<5>("boxes", d.boxes, "x, y, half_x, half_y, heading_degrees");
  world.Rows<3>("discs", d.discs, "x, y, radius");

  Section discs = world.Table("random_discs");
  discs.Range("count", d.random_discs.count);
  discs.Range("x", d.random_discs.x);
  discs.Range("y", d.random_discs.y);
  discs.Range("radius", d.random_discs.radius);
  discs.Finish();

  Section boxes = world.Table("random_boxes");
  boxes.Range("count", d.random_boxes.count);
  boxes.Range("x", d.random_boxes.x);
  boxes.Range("y", d.random_boxes.y);
  boxes.Range("half_x", d.random_boxes.half_x);
  boxes.Range("half_y", d.random_boxes.half_y);
  boxes.Range("heading_degrees", d.random_boxes.heading_degrees);
  boxes.Finish();

  Section goal = world.Table("goal");
  goal.Choice<Goal::Kind>("kind", d.goal.kind,
                          {{"half-plane", Goal::Kind::kHalfPlane}, {"disc", Goal::Kind::kDisc}});
  goal.Numbers("normal", d.goal.normal);
  goal.Range("offset", d.goal.offset);
  goal.Range("x", d.goal.x);
  goal.Range("y", d.goal.y);
  goal.Range("radius", d.goal.radius);
  goal.Number("depth", d.goal.depth);
  goal.Finish();

  Section start = world.Table("start");
  start.Range("x", d.start.x);
  start.Range("y", d.start.y);
  start.Range("heading_degrees", d.start.heading_degrees);
  start.Integer("per_world", d.start.per_world);
  start.Number("clearance", d.start.clearance);
  start.Finish();

  Section push = world.Table("disturbance");
  push.Choice<Disturbance::Kind>("kind", d.disturbance.kind,
                                 {{"none", Disturbance::Kind::kNone},
                                  {"von-karman", Disturbance::Kind::kVonKarman},
                                  {"uniform-noise", Disturbance::Kind::kUniformNoise}});
  push.Numbers("gain", d.disturbance.gain);
  push.Number("intensity", d.disturbance.intensity);
  push.Number("length_scale", d.disturbance.length_scale);
  push.Number("shortest_wavelength", d.disturbance.shortest_wavelength);
  push.Integer("modes", d.disturbance.modes);
  push.Number("half_width", d.disturbance.half_width);
  push.Finish();

  world.Finish();
  world.Check(Validate(d));
}

void ReadRobot(Section robot, RobotOptions& o) {
  robot.Choice<RobotOptions::Kind>(
      "kind", o.kind,
      {{"car", RobotOptions::Kind::kCar}, {"differential", RobotOptions::Kind::kDifferential}});
  robot.Number("speed", o.speed);
  robot.Number("radius", o.radius);
  robot.Number("length", o.length);
  robot.Number("steering_limit_degrees", o.steering_limit_degrees);
  robot.Number("turn_rate_limit", o.turn_rate_limit);
  robot.Finish();
  robot.Check(Validate(o));
}

void ReadLidar(Section lidar, LidarOptions& o) {
  // A named fan sets the angles; they may not be given twice.
  lidar.Choice<LidarOptions>("fan", o, {{"symmetric", kSymmetricFan}, {"one-sided", kOneSidedFan}});
  if (lidar.Has("fan")) {
    for (const char* key : {"from_degrees", "to_degrees"}) {
      double given = 0;
      lidar.Number(key, given);
      if (lidar.Has(key)) lidar.Fail(key, fmt::format("{}: lidar.fan sets it already", given));
    }
  }
  lidar.Integer("beams", o.beams);
  lidar.Number("range", o.range);
  lidar.Number("from_degrees", o.from_degrees);
  lidar.Number("to_degrees", o.to_degrees);
  lidar.Finish();
  lidar.Check(Validate(o));
}

void ReadEpisode(Section episode, EpisodeOptions& o) {
  episode.Number("time_step", o.time_step);
  episode.Integer("horizon", o.horizon);
  episode.Number("cost_rate", o.cost_rate);
  episode.Choice<EpisodeOptions::Clock>("clock", o.clock,
                                        {{"elapsed", EpisodeOptions::Clock::kElapsed},
                                         {"step-index", EpisodeOptions::Clock::kStepIndex}});
  episode.Finish();
  episode.Check(Validate(o));
}

void ReadPolicy(Section policy, Config& config) {
  MlpOptions& o = config.training.policy;
  policy.Sizes("hidden", o.hidden);
  policy.Choice<Activation>("activation", o.activation,
                            {{"relu", Activation::kRelu}, {"tanh", Activation::kTanh}});
  policy.Flag("state_inputs", o.state_inputs);
  policy.Flag("goal_inputs", o.goal_inputs);
  policy.Choice<RangeCode>(
      "range_code", o.range_code,
      {{"raw", RangeCode::kRaw}, {"scaled", RangeCode::kScaled}, {"inverse", RangeCode::kInverse}});
  policy.Number("range_offset", o.range_offset);
  policy.Choice<OutputMap>("output_map", o.output_map,
                           {{"clamp", OutputMap::kClamp}, {"tanh", OutputMap::kTanh}});
  policy.Number("initial_half_width", config.initial_half_width);
  policy.Choice<Normalisation>(
      "normalisation", config.training.normalisation,
      {{"none", Normalisation::kNone}, {"measured", Normalisation::kMeasured}});
  policy.Integer("normalisation_worlds", config.training.normalisation_worlds);
  policy.Finish();
  policy.Check(Validate(o));
  if (!(config.initial_half_width >= 0 && config.initial_half_width <= 10)) {
    policy.Fail("initial_half_width",
                fmt::format("{}: must be in [0, 10]", config.initial_half_width));
  }
  policy.Within("normalisation_worlds", config.training.normalisation_worlds, 1, 1000000);
}

// What may differ from learner to learner.
void ReadLearner(Section& learner, LearnerSettings& o) {
  learner.Integer("worlds", o.worlds);
  learner.Integer("starts", o.starts);
  learner.Choice<TrainingCost::Kind>("cost", o.cost.kind,
                                     {{"paper", TrainingCost::Kind::kPaper},
                                      {"failure", TrainingCost::Kind::kFailure},
                                      {"plain", TrainingCost::Kind::kPlain}});
  learner.Number("distance_weight", o.cost.distance_weight);
  learner.Number("margin", o.cost.margin);
  learner.Choice<EstimatorOptions::Kind>(
      "estimator", o.estimator.kind,
      {{"evolution", EstimatorOptions::Kind::kEvolution},
       {"finite-differences", EstimatorOptions::Kind::kFiniteDifferences}});
  learner.Integer("pairs", o.estimator.pairs);
  learner.Choice<EstimatorOptions::Shaping>(
      "shaping", o.estimator.shaping,
      {{"raw", EstimatorOptions::Shaping::kRaw},
       {"centred-ranks", EstimatorOptions::Shaping::kCentredRanks}});
  learner.Number("sigma", o.sigma);
  learner.Number("sigma_rate", o.sigma_rate);
  learner.NumberOrWord<BiasOptions::Kind>(
      "bias", o.bias.given, o.bias.kind, BiasOptions::Kind::kGiven,
      {{"worlds", BiasOptions::Kind::kWorlds}, {"paper", BiasOptions::Kind::kPaper}});
  learner.Choice<OptimizerOptions::Kind>("optimizer", o.optimizer.kind,
                                         {{"sgd", OptimizerOptions::Kind::kSgd},
                                          {"adam", OptimizerOptions::Kind::kAdam},
                                          {"clipup", OptimizerOptions::Kind::kClipUp}});
  learner.Number("step", o.step.step);
  learner.Choice<StepOptions::Schedule>("schedule", o.step.schedule,
                                        {{"power", StepOptions::Schedule::kPower},
                                         {"constant", StepOptions::Schedule::kConstant},
                                         {"geometric", StepOptions::Schedule::kGeometric}});
  learner.Number("step_exponent", o.step.exponent);
  learner.Number("last_step", o.step.last);
  learner.Choice<StopOptions::Rule>("stop", o.stop.rule,
                                    {{"gradient", StopOptions::Rule::kGradient},
                                     {"auto", StopOptions::Rule::kAuto},
                                     {"plateau", StopOptions::Rule::kPlateau},
                                     {"never", StopOptions::Rule::kNever}});
  learner.Number("threshold", o.stop.threshold);
  learner.Integer("window", o.stop.window);
  learner.Number("tolerance", o.stop.tolerance);
  learner.Integer("stock_every", o.stock_every);
  learner.Integer("stock_worlds", o.stock_worlds);
  learner.Flag("rest", o.rest);
}

void ReadFederation(Section federation, Config& config) {
  FederationOptions& o = config.training.federation;
  federation.Choice<Algorithm>("algorithm", o.algorithm,
                               {{"fedgen", Algorithm::kFedGen},
                                {"local", Algorithm::kLocal},
                                {"fedavg", Algorithm::kFedAvg},
                                {"centralized", Algorithm::kCentralized}});
  federation.Integer("learners", config.num_learners);
  federation.Integer("rounds", o.rounds);
  federation.Integer("episodes", o.episodes);
  federation.Integer("average_every", o.average_every);
  federation.Number("gamma", config.training.gamma);
  federation.Integer("track_every", config.track_every);
  federation.Integer("track_worlds", config.track_worlds);
  federation.Integer("selection_worlds", config.selection_worlds);
  federation.Choice<Prize>("prize", config.prize,
                           {{"cost", Prize::kCost}, {"safety", Prize::kSafety}});
  federation.Integer("certificate_worlds", config.certificate_worlds);
  federation.Number("confidence", config.confidence);
  federation.Finish();
  federation.Within("learners", config.num_learners, 1, 1000);
  federation.Within("rounds", o.rounds, 1, 10000000);
  federation.Within("episodes", o.episodes, 0, std::int64_t{1'000'000'000'000'000});
  federation.Within("average_every", o.average_every, 0, 10000000);
  federation.Within("track_every", config.track_every, 0, 10000000);
  federation.Within("track_worlds", config.track_worlds, 1, 100000000);
  federation.Within("selection_worlds", config.selection_worlds, 1, 1000000000);
  federation.Within("certificate_worlds", config.certificate_worlds, 1, 1000000000);
  if (const double gamma = config.training.gamma; !(gamma > 0 && gamma < 1)) {
    federation.Fail("gamma", fmt::format("{}: must be in (0, 1)", gamma));
  }
  if (!IsConfidence(config.confidence)) {
    federation.Fail("confidence", fmt::format("{}: {}", config.confidence, kConfidenceRule));
  }
}

// [learner] holds for all; entry i of [[learners]] changes learner i.
void ReadLearners(Section& root, Config& config) {
  LearnerSettings common;
  common.initial_half_width = config.initial_half_width;
  Section section = root.Table("learner");
  ReadLearner(section, common);
  section.Finish();
  section.Check(Validate(common));
  const auto num_learners = static_cast<std::size_t>(std::clamp(config.num_learners, 1, 1000));
  config.training.learners.assign(num_learners, common);
  config.initial_policies.assign(num_learners, "");
  std::size_t index = 0;
  for (Section& own : root.Tables("learners", num_learners)) {
    LearnerSettings& settings = config.training.learners[index];
    ReadLearner(own, settings);
    own.Number("initial_half_width", settings.initial_half_width);
    own.Text("initial_policy", config.initial_policies[index]);
    if (own.Has("world")) {
      settings.own_world = config.training.task.world;
      ReadWorld(own.Table("world"), *settings.own_world);
    } else {
      own.Known("world");
    }
    own.Finish();
    own.Check(Validate(settings));
    ++index;
  }
  // All might adopt the Cloud's own candidate and rest: nobody would be left to search.
  const bool rests = std::ranges::any_of(config.training.learners, &LearnerSettings::rest);
  if (rests && config.training.federation.average_every > 0) {
    section.Fail("rest", "true: does not go with federation.average_every > 0");
  }
}

Result<toml::table> ParseToml(std::string_view text, const std::string& name) {
  try {
    return toml::parse(text, std::string_view(name));
  } catch (const toml::parse_error& error) {
    const std::string problem(error.description().substr(0, 200));
    return Error{ErrorCode::kConfig, fmt::format("{}:{}: {}", name, error.source().begin.line,
                                                 Printable(problem, kLongestMessage))};
  }
}

// Lays `over` on `base`: tables merge, everything else is replaced.
void Merge(const toml::table& over, toml::table& base) {
  for (const auto& [key, node] : over) {
    const toml::table* inner = node.as_table();
    toml::table* base_inner = base[key].as_table();
    if (inner != nullptr && base_inner != nullptr) {
      Merge(*inner, *base_inner);
    } else {
      node.visit([&, k = key.str()](const auto& typed) { base.insert_or_assign(k, typed); });
    }
  }
}

// a.b.c = value, and nothing else.
bool IsOneKey(const toml::table& table) {
  const toml::table* at = &table;
  while (at->size() == 1) {
    const toml::node& only = at->begin()->second;
    if (!only.is_table()) return true;
    at = only.as_table();
  }
  return false;
}

Result<void> Apply(const std::string& override_text, toml::table& table) {
  const std::size_t equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Error{ErrorCode::kConfig, fmt::format("--set = {}: must be key=value", override_text)};
  }
  const std::string key = override_text.substr(0, equals);
  const std::string value = override_text.substr(equals + 1);
  Result<toml::table> parsed = ParseToml(override_text, Reading::kOverride);
  if (!parsed) {
    // kind=car without quotes: read the value as a string.
    parsed = ParseToml(fmt::format("{} = '{}'", key, value), Reading::kOverride);
  }
  if (!parsed || !IsOneKey(*parsed)) {
    return Error{ErrorCode::kConfig,
                 fmt::format("--set = {}: must be one key and its value in TOML", override_text)};
  }
  // An angle given here replaces a fan named in the file.
  if (key == "lidar.from_degrees" || key == "lidar.to_degrees") {
    if (toml::table* lidar = table["lidar"].as_table()) lidar->erase("fan");
  }
  Merge(*parsed, table);
  return {};
}

// Writes a value as TOML, with the fewest digits that read back the same. (toml++ writes all 17,
// 0.10000000000000001 for 0.1.)
void WriteValue(const toml::node& node, std::ostream& out) {
  if (const auto* number = node.as_floating_point()) {
    const std::string text = fmt::format("{}", number->get());
    const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
    out << text << (whole ? ".0" : "");  // an integer is another type
  } else if (const toml::array* array = node.as_array()) {
    out << '[';
    for (std::size_t index = 0; index < array->size(); ++index) {
      out << (index == 0 ? "" : ", ");
      WriteValue(*array->get(index), out);
    }
    out << ']';
  } else {
    node.visit([&](const auto& value) { out << value; });
  }
}

bool IsListOfTables(const toml::node& node) {
  const toml::array* array = node.as_array();
  return array != nullptr && !array->empty() && array->get(0)->is_table();
}

// Writes a table: values first, then the tables in it, each under its full name. Keys are ours, so
// they need no quotes.
void WriteTable(const toml::table& table, const std::string& path, std::ostream& out) {
  for (const auto& [key, node] : table) {
    if (node.is_table() || IsListOfTables(node)) continue;
    out << key.str() << " = ";
    WriteValue(node, out);
    out << '\n';
  }
  for (const auto& [key, node] : table) {
    const std::string name = path + (path.empty() ? "" : ".") + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      out << (out.tellp() > 0 ? "\n[" : "[") << name << "]\n";
      WriteTable(*inner, name, out);
    } else if (IsListOfTables(node)) {
      for (const toml::node& element : *node.as_array()) {
        out << "\n[[" << name << "]]\n";
        WriteTable(*element.as_table(), name, out);
      }
    }
  }
}

}  // namespace

Result<Config> ParseConfig(std::string_view text, const std::string& name,
                           std::span<const std::string> overrides) {
  Result<toml::table> parsed = ParseToml(text, name);
  if (!parsed) return parsed.error();
  for (const std::string& one : overrides) {
    if (Result<void> applied = Apply(one, *parsed); !applied) return applied.error();
  }
  Config config;
  Reading reading(name);
  toml::table resolved;
  Section root(&*parsed, "", reading, resolved);
  Task& task = config.training.task;
  ReadWorld(root.Table("world"), task.world);
  ReadRobot(root.Table("robot"), task.robot);
  ReadLidar(root.Table("lidar"), task.lidar);
  ReadEpisode(root.Table("episode"), task.episode);
  ReadPolicy(root.Table("policy"), config);
  ReadFederation(root.Table("federation"), config);
  ReadLearners(root, config);
  root.Finish();
  if (const std::optional<Error>& error = reading.error()) return *error;
  std::ostringstream written;
  WriteTable(resolved, "", written);
  config.resolved = written.str();
  return config;
}

Result<Config> LoadConfig(const std::string& path, std::span<const std::string> overrides) {
  const Result<std::string> text = ReadFile(path, kMaxConfigBytes);
  if (!text) {
    // Too large to be a configuration.
    const bool data = text.error().code == ErrorCode::kData;
    return Error{data ? ErrorCode::kConfig : text.error().code, text.error().message};
  }
  return ParseConfig(*text, path, overrides);
}

}  // namespace fedgen
