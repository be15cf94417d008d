// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/mlp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace fedgen {
namespace {

// The paper's network: 24 inputs, three hidden layers of 20.
Mlp PaperNet() { return MakeMlp(MlpOptions{}, 20, 5, 0.785); }

TEST(Mlp, HasThePapersShape) {
  const Mlp mlp = PaperNet();
  EXPECT_EQ(mlp.Shape(), "24-20-20-20-1");
  EXPECT_EQ(mlp.num_inputs(), 24);
  EXPECT_EQ(mlp.num_layers(), 4);
  // 24 * 20 + 20, twice 20 * 20 + 20, 20 + 1.
  EXPECT_EQ(NumParameters(mlp), 1361U);
  EXPECT_EQ(mlp.parameters.size(), 1361U);
  EXPECT_FALSE(FindProblem(mlp));
}

TEST(Mlp, CountsItsInputs) {
  MlpOptions options;
  options.state_inputs = false;
  EXPECT_EQ(MakeMlp(options, 20, 5, 1).num_inputs(), 20);
  options.goal_inputs = true;
  EXPECT_EQ(MakeMlp(options, 20, 5, 1).num_inputs(), 22);
  options.state_inputs = true;
  EXPECT_EQ(MakeMlp(options, 20, 5, 1).num_inputs(), 26);
}

TEST(Mlp, MayHaveNoHiddenLayer) {
  MlpOptions options;
  options.hidden = {};
  const Mlp mlp = MakeMlp(options, 20, 5, 1);
  EXPECT_EQ(mlp.Shape(), "24-1");
  EXPECT_EQ(NumParameters(mlp), 25U);
  EXPECT_EQ(mlp.layer_inputs(0), 24);
  EXPECT_EQ(mlp.layer_outputs(0), 1);
  EXPECT_FALSE(FindProblem(mlp));
}

TEST(Mlp, KnowsItsWidestLayer) {
  MlpOptions options;
  options.hidden = {3, 40, 7};
  EXPECT_EQ(MakeMlp(options, 20, 5, 1).widest_layer(), 40);
  EXPECT_EQ(MakeMlp(options, 100, 5, 1).widest_layer(), 104);
}

TEST(MakeMlp, StartsAtZeroWithTheIdentityAsNormalisation) {
  const Mlp mlp = PaperNet();
  EXPECT_EQ(mlp.num_beams, 20);
  EXPECT_EQ(mlp.max_range, 5.0F);
  EXPECT_EQ(mlp.control_limit, 0.785F);
  for (const float parameter : mlp.parameters) EXPECT_EQ(parameter, 0.0F);
  for (const float scale : mlp.input_scale) EXPECT_EQ(scale, 1.0F);
  for (const float shift : mlp.input_shift) EXPECT_EQ(shift, 0.0F);
}

TEST(DrawParameters, GivesTheSameBitsForTheSameKey) {
  Mlp a = PaperNet();
  Mlp b = PaperNet();
  Mlp c = PaperNet();
  DrawParameters(Key(1), 0.5, a);
  DrawParameters(Key(1), 0.5, b);
  DrawParameters(Key(2), 0.5, c);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_NE(a.parameters, c.parameters);
}

// Each weight is uniform on +-half_width sqrt(3 / inputs): variance half_width^2 / inputs, so a sum
// over unit inputs has the variance half_width^2. The mean square of n weights is off by
// sqrt(0.8 / n) of itself (fourth moment 9/5 of the squared variance), five times that allowed.
TEST(DrawParameters, KeepsTheSizeOfInputs) {
  MlpOptions options;
  options.hidden = {50, 30};
  Mlp mlp = MakeMlp(options, 20, 5, 1);
  DrawParameters(Key(3), 0.5, mlp);
  std::size_t at = 0;
  for (int layer = 0; layer < mlp.num_layers(); ++layer) {
    const double inputs = mlp.layer_inputs(layer);
    const double bound = 0.5 * std::sqrt(3 / inputs);
    const double n = inputs * mlp.layer_outputs(layer);
    double sum = 0;
    double sum2 = 0;
    double largest = 0;
    for (int weight = 0; weight < static_cast<int>(n); ++weight, ++at) {
      const double w = mlp.parameters[at];
      ASSERT_LE(std::fabs(w), bound * 1.000001);
      largest = std::max(largest, std::fabs(w));
      sum += w;
      sum2 += w * w;
    }
    EXPECT_NEAR(sum / n, 0, 5 * 0.5 / std::sqrt(inputs * n));
    EXPECT_NEAR(sum2 / n * inputs, 0.25, 0.25 * 5 * std::sqrt(0.8 / n));
    EXPECT_GT(largest, 0.8 * bound);
    for (int bias = 0; bias < mlp.layer_outputs(layer); ++bias)
      EXPECT_EQ(mlp.parameters[at++], 0.0F);
  }
  EXPECT_EQ(at, mlp.parameters.size());
}

TEST(Validate, NamesWhatIsWrongWithANetworksOptions) {
  EXPECT_FALSE(Validate(MlpOptions{}));
  struct Case {
    std::function<void(MlpOptions&)> spoil;
    std::string field;
    std::string problem;
  };
  const std::vector<Case> cases = {
      {[](MlpOptions& o) { o.hidden = {20, 0}; }, "hidden", "0: must be in 1..4096"},
      {[](MlpOptions& o) { o.hidden = {4097}; }, "hidden", "4097: must be in 1..4096"},
      {[](MlpOptions& o) { o.hidden.assign(17, 5); }, "hidden", "17 integers: must be at most 16"},
      {[](MlpOptions& o) { o.range_offset = 0; }, "range_offset", "0: must be in [1e-6, 1e3]"},
      {[](MlpOptions& o) { o.range_offset = std::nan(""); }, "range_offset",
       "nan: must be in [1e-6, 1e3]"},
      // 0 as a float: the policy could not be saved.
      {[](MlpOptions& o) { o.range_offset = 1e-60; }, "range_offset",
       "1e-60: must be in [1e-6, 1e3]"},
  };
  for (const Case& c : cases) {
    MlpOptions options;
    c.spoil(options);
    const std::optional<FieldError> problem = Validate(options);
    ASSERT_TRUE(problem) << c.field << " = " << c.problem;
    EXPECT_EQ(problem->field, c.field);
    EXPECT_EQ(problem->problem, c.problem);
  }
}

TEST(FindProblem, NamesEachBrokenPart) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  struct Case {
    std::function<void(Mlp&)> spoil;
    std::string problem;
  };
  const std::vector<Case> cases = {
      {[](Mlp& m) { m.num_beams = 0; }, "beams = 0: must be in 1..1024"},
      {[](Mlp& m) { m.num_beams = 1025; }, "beams = 1025: must be in 1..1024"},
      {[](Mlp& m) { m.max_range = 0; }, "max_range = 0: must be in (0, 1e4]"},
      {[](Mlp& m) { m.max_range = std::nanf(""); }, "max_range = nan: must be in (0, 1e4]"},
      {[](Mlp& m) { m.control_limit = -1; }, "control_limit = -1: must be in (0, 1e4]"},
      {[](Mlp& m) { m.range_offset = kInfinity; }, "range_offset = inf: must be in (0, 1e4]"},
      {[](Mlp& m) { m.hidden = {20, -3}; }, "hidden = -3: must be in 1..4096"},
      {[](Mlp& m) { m.hidden.assign(17, 1); }, "hidden = 17 integers: must be at most 16"},
      {[](Mlp& m) { m.input_scale.pop_back(); },
       "input_scale has 23 and input_shift 24 numbers: must be 24 each"},
      {[](Mlp& m) { m.input_shift.push_back(0); },
       "input_scale has 24 and input_shift 25 numbers: must be 24 each"},
      {[](Mlp& m) { m.goal_inputs = true; },
       "input_scale has 24 and input_shift 24 numbers: must be 26 each"},
      {[](Mlp& m) { m.parameters.pop_back(); },
       "1360 parameters: a 24-20-20-20-1 network has 1361"},
      {[](Mlp& m) { m.hidden.pop_back(); }, "1361 parameters: a 24-20-20-1 network has 941"},
      {[](Mlp& m) { m.input_scale[3] = std::nanf(""); }, "input_scale[3] = nan: must be finite"},
      {[](Mlp& m) { m.input_shift[5] = kInfinity; }, "input_shift[5] = inf: must be finite"},
      {[](Mlp& m) { m.parameters[1360] = -kInfinity; }, "parameters[1360] = -inf: must be finite"},
  };
  for (const Case& c : cases) {
    Mlp mlp = PaperNet();
    c.spoil(mlp);
    const std::optional<std::string> problem = FindProblem(mlp);
    ASSERT_TRUE(problem) << c.problem;
    EXPECT_EQ(*problem, c.problem);
  }
}

}  // namespace
}  // namespace fedgen
