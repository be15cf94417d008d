// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/network_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "fedgen/policy/mlp_kernel.h"

namespace fedgen {
namespace {

constexpr std::size_t kRows = NetworkWorkspace::kRows;

float Draw(Key key, std::uint64_t index, float half_width) {
  return half_width * (2 * UnitFloat(key.Block(index)[0]) - 1);
}

std::vector<float> DrawVector(Key key, std::size_t size, float half_width) {
  std::vector<float> values(size);
  for (std::size_t at = 0; at < size; ++at) values[at] = Draw(key, at, half_width);
  return values;
}

// Weights of sizes that keep activations near 1, and biases of up to 0.3.
std::vector<float> DrawParameters(Key key, const NetworkShape& shape) {
  std::vector<float> parameters;
  for (std::size_t l = 0; l + 1 < shape.sizes.size(); ++l) {
    const auto inputs = static_cast<std::size_t>(shape.sizes[l]);
    const auto outputs = static_cast<std::size_t>(shape.sizes[l + 1]);
    const float half_width = std::sqrt(3.0F / static_cast<float>(inputs));
    const auto weights = DrawVector(key.Fork(2 * l), inputs * outputs, half_width);
    const auto biases = DrawVector(key.Fork(2 * l + 1), outputs, 0.3F);
    parameters.insert(parameters.end(), weights.begin(), weights.end());
    parameters.insert(parameters.end(), biases.begin(), biases.end());
  }
  return parameters;
}

// The network in double, one sample at a time.
class Oracle {
 public:
  Oracle(const NetworkShape& shape, std::span<const float> parameters)
      : shape_(shape), parameters_(parameters.begin(), parameters.end()) {}

  double& parameter(std::size_t at) { return parameters_[at]; }

  double Output(const float* inputs) { return Activations(inputs).back()[0]; }

  /// Adds weight d output / d parameter to sum, and its size to size.
  void AddGradient(const float* inputs, double weight, std::vector<double>& sum,
                   std::vector<double>& size) {
    const std::vector<std::vector<double>> h = Activations(inputs);
    std::vector<double> delta = {weight};
    std::size_t end = parameters_.size();
    for (std::size_t l = h.size() - 1; l > 0; --l) {
      const std::vector<double>& below = h[l - 1];
      const std::size_t first = end - delta.size() * (below.size() + 1);
      std::vector<double> next(below.size());
      const auto add = [&](std::size_t at, double value) {
        sum[at] += value;
        size[at] += std::fabs(value);
      };
      for (std::size_t o = 0; o < delta.size(); ++o) {
        for (std::size_t i = 0; i < below.size(); ++i) {
          add(first + o * below.size() + i, delta[o] * below[i]);
          next[i] += delta[o] * parameters_[first + o * below.size() + i];
        }
        add(end - delta.size() + o, delta[o]);
      }
      for (std::size_t i = 0; i < below.size(); ++i) {
        const bool relu = shape_.activation == Activation::kRelu;
        next[i] *= relu ? (below[i] > 0 ? 1.0 : 0.0) : 1 - below[i] * below[i];
      }
      delta = next;
      end = first;
    }
  }

 private:
  std::vector<std::vector<double>> Activations(const float* inputs) {
    std::vector<std::vector<double>> h = {{inputs, inputs + shape_.sizes[0]}};
    const double* parameter = parameters_.data();
    for (std::size_t l = 1; l < shape_.sizes.size(); ++l) {
      std::vector<double> next(static_cast<std::size_t>(shape_.sizes[l]));
      for (double& unit : next) {
        for (const double input : h.back()) unit += input * *parameter++;
      }
      for (double& unit : next) {
        unit += *parameter++;
        if (l + 1 == shape_.sizes.size()) continue;
        unit = shape_.activation == Activation::kRelu ? std::max(unit, 0.0) : std::tanh(unit);
      }
      h.push_back(next);
    }
    return h;
  }

  NetworkShape shape_;
  std::vector<double> parameters_;
};

// Samples between numbers that must not matter, and the weights of their outputs.
struct Samples {
  Samples(Key key, int num_inputs, std::size_t num_rows)
      : stride(PadToLaneGroup(num_inputs) + kLaneGroup),
        values(num_rows * static_cast<std::size_t>(stride),
               std::numeric_limits<float>::quiet_NaN()),
        output_gradients(DrawVector(key.Fork(1), num_rows, 1)) {
    for (std::size_t r = 0; r < num_rows; ++r) {
      const auto drawn = DrawVector(key.Fork(2 + r), static_cast<std::size_t>(num_inputs), 1);
      std::ranges::copy(drawn, values.begin() + static_cast<std::ptrdiff_t>(r) * stride);
    }
  }

  std::size_t num_rows() const { return output_gradients.size(); }
  const float* row(std::size_t r) const {
    return values.data() + r * static_cast<std::size_t>(stride);
  }
  InputRows rows() const { return {values.data(), stride, static_cast<int>(num_rows())}; }

  int stride;
  AlignedVector<float> values;
  std::vector<float> output_gradients;
};

struct Passed {
  std::vector<float> outputs;
  std::vector<float> gradient;
};

Passed Pass(Kernel kernel, const PackedNetwork& network, const Samples& samples,
            NetworkWorkspace& workspace) {
  Passed passed{std::vector<float>(samples.num_rows(), 99),
                std::vector<float>(NumParameters(network.shape()), 99)};
  Forward(kernel, network, samples.rows(), workspace, passed.outputs);
  Backward(kernel, network, samples.rows(), samples.output_gradients, workspace, passed.gradient);
  return passed;
}

std::vector<std::uint32_t> Bits(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

std::string Name(const NetworkShape& shape, std::size_t num_rows) {
  std::string name = shape.activation == Activation::kRelu ? "relu" : "tanh";
  for (const int size : shape.sizes) name += fmt::format("-{}", size);
  return name + fmt::format(", {} rows", num_rows);
}

// Calls test(shape, num_rows, key) for networks of odd and of usual sizes.
template <typename Test>
void ForEachCase(const Test& test) {
  const std::vector<std::vector<int>> all_sizes = {{1, 1},
                                                   {7, 1},
                                                   {65, 1},
                                                   {1, 1, 1},
                                                   {9, 7, 1},
                                                   {7, 65, 9, 1},
                                                   {65, 1, 7, 1},
                                                   {3, 2, 4, 8, 16, 5, 1},
                                                   {24, 20, 20, 20, 1},
                                                   {26, 32, 32, 1},
                                                   {66, 64, 64, 1}};
  std::uint64_t trial = 0;
  for (const std::vector<int>& sizes : all_sizes) {
    for (const Activation activation : {Activation::kRelu, Activation::kTanh}) {
      for (const std::size_t num_rows : {std::size_t{1}, std::size_t{5}, std::size_t{127}, kRows}) {
        const NetworkShape shape{sizes, activation};
        SCOPED_TRACE(Name(shape, num_rows));
        test(shape, num_rows, Key(71).Fork(trial++));
      }
    }
  }
}

// Central differences of the oracle's sum of weighted outputs. With steps of 1e-5 they are off by
// the third derivative times 1e-10 and by rounding over 1e-5, both below 1e-8 here.
TEST(Oracle, HasTheGradientOfFiniteDifferences) {
  for (const Activation activation : {Activation::kRelu, Activation::kTanh}) {
    for (const std::vector<int>& sizes : {std::vector{3, 1}, {5, 4, 1}, {4, 7, 3, 5, 1}}) {
      const NetworkShape shape{sizes, activation};
      const std::vector<float> parameters = DrawParameters(Key(72), shape);
      const Samples samples(Key(73), sizes[0], 5);
      Oracle oracle(shape, parameters);
      std::vector<double> gradient(parameters.size());
      std::vector<double> size(parameters.size());
      for (std::size_t r = 0; r < samples.num_rows(); ++r) {
        oracle.AddGradient(samples.row(r), samples.output_gradients[r], gradient, size);
      }
      for (std::size_t at = 0; at < parameters.size(); ++at) {
        const auto sum_at = [&](double value) {
          oracle.parameter(at) = value;
          double sum = 0;
          for (std::size_t r = 0; r < samples.num_rows(); ++r) {
            sum += static_cast<double>(samples.output_gradients[r]) * oracle.Output(samples.row(r));
          }
          return sum;
        };
        const double here = static_cast<double>(parameters[at]);
        const double difference = (sum_at(here + 1e-5) - sum_at(here - 1e-5)) / 2e-5;
        sum_at(here);
        EXPECT_NEAR(gradient[at], difference, 1e-8) << Name(shape, 5) << ", parameter " << at;
      }
    }
  }
}

// 1e-5 of the sizes of what is summed, and for activations and deltas near 0, whose relative error
// is larger, 3e-7 of the sizes of all output gradients: their sum is that of the last bias.
TEST(Network, HasTheOutputsAndTheGradientOfTheOracle) {
  int cases = 0;
  int reached = 0;
  ForEachCase([&](const NetworkShape& shape, std::size_t num_rows, Key key) {
    const std::vector<float> parameters = DrawParameters(key.Fork(0), shape);
    const Samples samples(key.Fork(1), shape.sizes[0], num_rows);
    PackedNetwork network(shape);
    network.Pack(parameters);
    NetworkWorkspace workspace(shape);
    const Passed passed = Pass(BestKernel(), network, samples, workspace);

    Oracle oracle(shape, parameters);
    std::vector<double> gradient(parameters.size());
    std::vector<double> size(parameters.size());
    for (std::size_t r = 0; r < num_rows; ++r) {
      oracle.AddGradient(samples.row(r), samples.output_gradients[r], gradient, size);
      ASSERT_NEAR(passed.outputs[r], oracle.Output(samples.row(r)), 2e-6) << "row " << r;
    }
    for (std::size_t at = 0; at < parameters.size(); ++at) {
      ASSERT_NEAR(passed.gradient[at], gradient[at], 1e-5 * size[at] + 3e-7 * size.back())
          << "parameter " << at;
    }
    ++cases;
    if (*std::max_element(size.begin(), size.begin() + shape.sizes[0]) > 1e-3) ++reached;
  });
  EXPECT_GT(reached, cases * 3 / 4) << "few gradients reach the first layer";
}

TEST(Network, GivesTheSameBitsInBothKernels) {
  ForEachCase([](const NetworkShape& shape, std::size_t num_rows, Key key) {
    const Samples samples(key.Fork(1), shape.sizes[0], num_rows);
    PackedNetwork network(shape);
    network.Pack(DrawParameters(key.Fork(0), shape));
    NetworkWorkspace workspace(shape);
    const Passed scalar = Pass(Kernel::kScalar, network, samples, workspace);
    const Passed simd = Pass(BestKernel(), network, samples, workspace);
    EXPECT_EQ(Bits(scalar.outputs), Bits(simd.outputs));
    EXPECT_EQ(Bits(scalar.gradient), Bits(simd.gradient));
  });
}

// What a workspace or a network held before leaves no trace.
TEST(Network, GivesTheSameBitsAgain) {
  const NetworkShape shape{{9, 20, 7, 1}, Activation::kTanh};
  const std::vector<float> parameters = DrawParameters(Key(74), shape);
  PackedNetwork network(shape);
  network.Pack(parameters);
  const Samples samples(Key(75), 9, 43);
  const Samples others(Key(76), 9, kRows);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    NetworkWorkspace workspace(shape);
    const Passed first = Pass(kernel, network, samples, workspace);
    std::vector<float> again(parameters.size());
    Backward(kernel, network, samples.rows(), samples.output_gradients, workspace, again);
    EXPECT_EQ(Bits(first.gradient), Bits(again));

    network.Pack(DrawParameters(Key(77), shape));
    const Passed other = Pass(kernel, network, others, workspace);
    EXPECT_NE(Bits(first.gradient), Bits(other.gradient));
    network.Pack(parameters);
    const Passed second = Pass(kernel, network, samples, workspace);
    EXPECT_EQ(Bits(first.outputs), Bits(second.outputs));
    EXPECT_EQ(Bits(first.gradient), Bits(second.gradient));
  }
}

// The chain over rows is that of plain code: a network without hidden layers.
TEST(Network, SumsItsGradientOverRowsInOrder) {
  const NetworkShape shape{{11, 1}, Activation::kRelu};
  PackedNetwork network(shape);
  network.Pack(DrawParameters(Key(78), shape));
  const Samples samples(Key(79), 11, kRows);
  std::vector<float> expected(12);
  for (std::size_t r = 0; r < kRows; ++r) {
    const float weight = samples.output_gradients[r];
    for (std::size_t i = 0; i < 11; ++i) {
      expected[i] = std::fma(weight, samples.row(r)[i], expected[i]);
    }
    expected[11] += weight;
  }
  NetworkWorkspace workspace(shape);
  EXPECT_EQ(Bits(Pass(BestKernel(), network, samples, workspace).gradient), Bits(expected));
}

// Ranges in m and a limit out of reach make the output itself the control.
TEST(Forward, HasTheBitsOfDecideMlp) {
  for (const std::vector<int>& hidden : {std::vector<int>{}, {20, 20, 20}, {9, 33}}) {
    for (const Activation activation : {Activation::kRelu, Activation::kTanh}) {
      MlpOptions options;
      options.hidden = hidden;
      options.activation = activation;
      options.range_code = RangeCode::kRaw;
      options.output_map = OutputMap::kClamp;
      options.goal_inputs = true;
      Mlp mlp = MakeMlp(options, 20, 5, 1e9);
      NetworkShape shape{{mlp.num_inputs()}, activation};
      shape.sizes.insert(shape.sizes.end(), hidden.begin(), hidden.end());
      shape.sizes.push_back(1);
      mlp.parameters = DrawParameters(Key(80), shape);
      ASSERT_EQ(NumParameters(shape), NumParameters(mlp));

      const Lidar lidar(kSymmetricFan);
      Batch batch(40, lidar);
      for (auto* column : {&batch.x, &batch.y, &batch.sin, &batch.cos, &batch.goal_forward,
                           &batch.goal_left, &batch.ranges}) {
        const auto drawn = DrawVector(Key(81).Fork(column->size()), column->size(), 2);
        std::copy(drawn.begin(), drawn.end(), column->begin());
      }
      MlpWorkspace mlp_workspace(mlp);
      DecideMlp(BestKernel(), mlp, 40, mlp_workspace, batch);

      const auto num_inputs = static_cast<std::size_t>(shape.sizes[0]);
      const int stride = PadToLaneGroup(shape.sizes[0]);
      AlignedVector<float> inputs(40 * static_cast<std::size_t>(stride));
      for (std::size_t slot = 0; slot < 40; ++slot) {
        RawInputs(BestKernel(), mlp, batch, static_cast<int>(slot),
                  std::span(inputs).subspan(slot * static_cast<std::size_t>(stride), num_inputs));
      }
      PackedNetwork network(shape);
      network.Pack(mlp.parameters);
      NetworkWorkspace workspace(shape);
      std::vector<float> outputs(40);
      Forward(BestKernel(), network, {inputs.data(), stride, 40}, workspace, outputs);
      EXPECT_EQ(Bits(outputs), Bits(std::span(batch.control).first(40))) << Name(shape, 40);
    }
  }
}

// What happened to a sample: o moved to outputs, and noise was drawn around old_outputs.
SurrogateSamples DrawSurrogateSamples(Key key, float spread) {
  SurrogateSamples samples;
  const auto draw = [&](std::uint64_t stream, float half_width) {
    const std::vector<float> drawn = DrawVector(key.Fork(stream), kRows, half_width);
    return AlignedVector<float>(drawn.begin(), drawn.end());
  };
  samples.old_outputs = draw(0, 1);
  samples.outputs = draw(1, spread);  // moves of up to one spread
  for (std::size_t r = 0; r < kRows; ++r) samples.outputs[r] += samples.old_outputs[r];
  samples.noise = draw(2, 2.5F);
  samples.advantages = draw(3, 3);
  return samples;
}

std::vector<float> Gradients(Kernel kernel, const SurrogateSamples& samples, int num_rows,
                             float spread, float clip) {
  AlignedVector<float> gradients(kRows, 99);
  SurrogateGradients(kernel, samples, num_rows, spread, clip, gradients);
  return {gradients.begin(), gradients.end()};
}

// Eq. 49 for one sample, from its densities: the action a = old + s n was drawn from N(old, s^2).
double SurrogateLoss(const SurrogateSamples& samples, std::size_t r, double output, double spread,
                     double clip) {
  const auto old_output = static_cast<double>(samples.old_outputs[r]);
  const auto advantage = static_cast<double>(samples.advantages[r]);
  const double action = old_output + spread * static_cast<double>(samples.noise[r]);
  const auto log_density = [&](double mean) {
    return -(action - mean) * (action - mean) / (2 * spread * spread);
  };
  const double ratio = std::exp(log_density(output) - log_density(old_output));
  return -std::min(ratio * advantage, std::clamp(ratio, 1 - clip, 1 + clip) * advantage);
}

// Central differences in double. A sample within 1e-3 of a kink of the clipped loss is left out.
TEST(SurrogateGradients, AreThoseOfTheClippedLoss) {  // Eq. 49
  int still = 0, moving = 0;
  for (const float clip : {0.1F, 0.2F, 0.6F, std::numeric_limits<float>::infinity()}) {
    for (const float spread : {0.05F, 0.3F, 2.0F}) {
      const SurrogateSamples samples =
          DrawSurrogateSamples(Key(82).Fork(std::bit_cast<std::uint32_t>(clip)), spread);
      const std::vector<float> gradients =
          Gradients(BestKernel(), samples, static_cast<int>(kRows), spread, clip);
      for (std::size_t r = 0; r < kRows; ++r) {
        const double s = static_cast<double>(spread), c = static_cast<double>(clip);
        const auto output = static_cast<double>(samples.outputs[r]);
        const auto loss = [&](double at) { return SurrogateLoss(samples, r, at, s, c); };
        const double size = std::fabs(static_cast<double>(samples.advantages[r])) / s;
        const double right = (loss(output + 1e-3 * s) - loss(output)) / (1e-3 * s);
        const double left = (loss(output) - loss(output - 1e-3 * s)) / (1e-3 * s);
        if (std::fabs(right - left) > 0.02 * size) continue;  // the kink
        const double both = (loss(output + 1e-5 * s) - loss(output - 1e-5 * s)) / (2e-5 * s);
        ASSERT_NEAR(gradients[r], both, 2e-5 * size) << "row " << r << ", clip " << clip;
        ++(both == 0 ? still : moving);
      }
    }
  }
  EXPECT_GT(still, 200);
  EXPECT_GT(moving, 800);
}

// A sample stops to count where it would go on in its own direction, and only there: better than
// expected and already likelier than 1 + clip, or worse and already less likely than 1 - clip.
TEST(SurrogateGradients, StopOnlyOnTheSideOfTheAdvantage) {
  SurrogateSamples samples;
  for (auto* array :
       {&samples.outputs, &samples.old_outputs, &samples.noise, &samples.advantages}) {
    array->assign(kRows, 0.0F);
  }
  // Moved by half a spread, along the noise (rows 0, 2: ratio e^0.875) or against it (1, 3:
  // e^-1.125).
  for (std::size_t r = 0; r < 4; ++r) {
    samples.outputs[r] = 0.25F;
    samples.noise[r] = r % 2 == 0 ? 2.0F : -2.0F;
    samples.advantages[r] = r < 2 ? 1.5F : -1.5F;
  }
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    const std::vector<float> limited = Gradients(kernel, samples, 4, 0.5F, 0.2F);
    EXPECT_EQ(limited[0], 0) << "better, and likelier already";
    EXPECT_NEAR(limited[1], 1.5 * std::exp(-1.125) * 2.5 / 0.5, 1e-5) << "better: back to it";
    EXPECT_NEAR(limited[2], 1.5 * std::exp(0.875) * 1.5 / 0.5, 1e-5) << "worse: away from it";
    EXPECT_EQ(limited[3], 0) << "worse, and less likely already";
    const std::vector<float> free =
        Gradients(kernel, samples, 4, 0.5F, std::numeric_limits<float>::infinity());
    EXPECT_NEAR(free[0], -1.5 * std::exp(0.875) * 1.5 / 0.5, 1e-5);
    EXPECT_NEAR(free[3], -1.5 * std::exp(-1.125) * 2.5 / 0.5, 1e-5);
  }
}

TEST(SurrogateGradients, HaveTheSameBitsInBothKernels) {
  for (const float clip : {0.2F, std::numeric_limits<float>::infinity()}) {
    for (const float spread : {0.01F, 0.3F, 2.0F}) {
      const SurrogateSamples samples = DrawSurrogateSamples(Key(83), spread);
      for (const int num_rows : {1, 5, 8, 127, static_cast<int>(kRows)}) {
        const auto last = static_cast<std::size_t>(num_rows);
        const auto simd = Gradients(BestKernel(), samples, num_rows, spread, clip);
        const auto scalar = Gradients(Kernel::kScalar, samples, num_rows, spread, clip);
        EXPECT_EQ(Bits(std::span(simd).first(last)), Bits(std::span(scalar).first(last)));
      }
    }
  }
}

}  // namespace
}  // namespace fedgen
