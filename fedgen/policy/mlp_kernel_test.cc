// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/mlp_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace fedgen {
namespace {

float Draw(Key key, std::uint64_t index, double low, double high) {
  return static_cast<float>(low +
                            (high - low) * static_cast<double>(UnitFloat(key.Block(index)[0])));
}

// Fills what robots sense with random numbers of the sizes they have.
void DrawSenses(Key key, const Lidar& lidar, Batch& batch) {
  for (std::size_t slot = 0; slot < static_cast<std::size_t>(batch.capacity); ++slot) {
    const Key k = key.Fork(slot);
    const double heading = Draw(k, 0, -4, 4);
    batch.x[slot] = Draw(k, 1, -5, 5);
    batch.y[slot] = Draw(k, 2, 0, 10);
    batch.cos[slot] = static_cast<float>(std::cos(heading));
    batch.sin[slot] = static_cast<float>(std::sin(heading));
    batch.goal_forward[slot] = Draw(k, 3, -10, 10);
    batch.goal_left[slot] = Draw(k, 4, -10, 10);
    for (int beam = 0; beam < lidar.beam_stride; ++beam) {
      const auto at = static_cast<std::size_t>(beam);
      batch.ranges[slot * static_cast<std::size_t>(lidar.beam_stride) + at] =
          Draw(k, 10 + at, 0, static_cast<double>(lidar.range));
    }
  }
}

// Eq. 11 to 13 in double.
double DecideNaively(const Mlp& mlp, const Batch& batch, std::size_t slot) {
  std::vector<double> h;
  if (mlp.state_inputs) h = {batch.x[slot], batch.y[slot], batch.sin[slot], batch.cos[slot]};
  if (mlp.goal_inputs) {
    h.push_back(batch.goal_forward[slot]);
    h.push_back(batch.goal_left[slot]);
  }
  for (int beam = 0; beam < mlp.num_beams; ++beam) {
    const double range = batch.ranges[slot * static_cast<std::size_t>(batch.beam_stride) +
                                      static_cast<std::size_t>(beam)];
    switch (mlp.range_code) {
      case RangeCode::kRaw:
        h.push_back(range);
        break;
      case RangeCode::kScaled:
        h.push_back(range / static_cast<double>(mlp.max_range));
        break;
      case RangeCode::kInverse:
        h.push_back(1 / (range + static_cast<double>(mlp.range_offset)));
        break;
    }
  }
  for (std::size_t input = 0; input < h.size(); ++input) {
    h[input] = h[input] * mlp.input_scale[input] + mlp.input_shift[input];
  }
  std::vector<int> sizes = mlp.hidden;
  sizes.push_back(1);
  const float* parameter = mlp.parameters.data();
  for (std::size_t layer = 0; layer < sizes.size(); ++layer) {
    std::vector<double> next(static_cast<std::size_t>(sizes[layer]));
    for (double& unit : next) {
      for (const double input : h) unit += input * *parameter++;
    }
    for (double& unit : next) {
      unit += *parameter++;
      if (layer + 1 == sizes.size()) continue;
      unit = mlp.activation == Activation::kRelu ? std::max(unit, 0.0) : std::tanh(unit);
    }
    h = next;
  }
  const double limit = mlp.control_limit;
  return mlp.output_map == OutputMap::kTanh ? limit * std::tanh(h[0])
                                            : std::clamp(h[0], -limit, limit);
}

Mlp DrawMlp(const MlpOptions& options, int num_beams, Key key) {
  Mlp mlp = MakeMlp(options, num_beams, 5, 0.8);
  DrawParameters(key.Fork(0), 1, mlp);
  for (std::size_t at = 0; at < mlp.parameters.size(); ++at) {
    if (mlp.parameters[at] == 0) mlp.parameters[at] = Draw(key.Fork(1), at, -0.2, 0.2);  // biases
  }
  for (std::size_t at = 0; at < mlp.input_scale.size(); ++at) {
    mlp.input_scale[at] = Draw(key.Fork(2), at, -0.5, 0.5);
    mlp.input_shift[at] = Draw(key.Fork(3), at, -0.3, 0.3);
  }
  return mlp;
}

std::vector<float> Decide(Kernel kernel, const Mlp& mlp, int last, Batch& batch) {
  MlpWorkspace workspace(mlp);
  std::fill(batch.control.begin(), batch.control.end(), 99.0F);
  DecideMlp(kernel, mlp, last, workspace, batch);
  return {batch.control.begin(), batch.control.begin() + last};
}

struct Shape {
  std::vector<int> hidden;
  int num_beams;
};

const std::vector<Shape> kShapes = {
    {{}, 20},
    {{1}, 1},
    {{5}, 7},
    {{7, 1, 7}, 8},
    {{20}, 20},
    {{20, 20, 20}, 20},
    {{33, 9}, 33},
    {{300}, 20},
    {{6, 300, 5}, 64},
    {{4}, 200},
    {{11, 13, 17, 19}, 9},
};

// Float sums of up to 300 terms of size 1 / sqrt(300): 2e-5 covers them in every layer.
TEST(DecideMlp, AgreesWithTheNaiveNetworkAndGivesTheSameBitsInBothKernels) {
  std::uint64_t trial = 0;
  double largest = 0;
  for (const Shape& shape : kShapes) {
    const Lidar lidar({shape.num_beams, 5, -60, shape.num_beams > 1 ? 60.0 : -60.0});
    for (const Activation activation : {Activation::kRelu, Activation::kTanh}) {
      for (const RangeCode code : {RangeCode::kRaw, RangeCode::kScaled, RangeCode::kInverse}) {
        for (const OutputMap map : {OutputMap::kClamp, OutputMap::kTanh}) {
          for (const int inputs : {0, 1, 2, 3}) {
            MlpOptions options;
            options.hidden = shape.hidden;
            options.activation = activation;
            options.range_code = code;
            options.range_offset = 0.3;
            options.output_map = map;
            options.state_inputs = (inputs & 1) != 0;
            options.goal_inputs = (inputs & 2) != 0;
            const Key key = Key(61).Fork(trial++);
            const Mlp mlp = DrawMlp(options, shape.num_beams, key.Fork(0));
            ASSERT_FALSE(FindProblem(mlp));
            const int last = UniformInt(key.Block(0)[0], 1, 40);
            Batch batch(40, lidar);
            DrawSenses(key.Fork(1), lidar, batch);
            const std::vector<float> scalar = Decide(Kernel::kScalar, mlp, last, batch);
            const std::vector<float> simd = Decide(BestKernel(), mlp, last, batch);
            for (std::size_t slot = 0; slot < static_cast<std::size_t>(last); ++slot) {
              ASSERT_EQ(std::bit_cast<std::uint32_t>(scalar[slot]),
                        std::bit_cast<std::uint32_t>(simd[slot]))
                  << mlp.Shape() << ", trial " << trial << ", slot " << slot << ": " << scalar[slot]
                  << " and " << simd[slot];
              ASSERT_NEAR(simd[slot], DecideNaively(mlp, batch, slot), 2e-5)
                  << mlp.Shape() << ", trial " << trial;
              largest = std::max(largest, std::fabs(static_cast<double>(simd[slot])));
            }
          }
        }
      }
    }
  }
  EXPECT_GT(largest, 0.5) << "the networks hardly steer, so nothing was compared";
}

// A network without hidden layers and one weight is that weight times that input.
TEST(DecideMlp, ReadsItsInputsInTheDocumentedOrder) {
  const Lidar lidar(kSymmetricFan);
  Batch batch(16, lidar);
  DrawSenses(Key(62), lidar, batch);
  MlpOptions options;
  options.hidden = {};
  options.goal_inputs = true;
  options.range_code = RangeCode::kRaw;
  options.output_map = OutputMap::kClamp;
  Mlp mlp = MakeMlp(options, 20, 5, 100);
  const float* ranges = batch.ranges.data() + 3 * lidar.beam_stride;
  std::vector<float> expected = {
      batch.x[3],        batch.y[3], batch.sin[3], batch.cos[3], batch.goal_forward[3],
      batch.goal_left[3]};
  expected.insert(expected.end(), ranges, ranges + 20);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    for (std::size_t input = 0; input < expected.size(); ++input) {
      std::fill(mlp.parameters.begin(), mlp.parameters.end(), 0.0F);
      mlp.parameters[input] = 2;
      EXPECT_EQ(Decide(kernel, mlp, 4, batch)[3], 2 * expected[input]) << "input " << input;
    }
  }
}

// A shift alone is a normalisation too, and so is a scale alone.
TEST(DecideMlp, NormalisesByEachOfScaleAndShift) {
  const Lidar lidar({7, 5, -60, 60});
  Batch batch(16, lidar);
  DrawSenses(Key(67), lidar, batch);
  Mlp mlp = DrawMlp({}, 7, Key(68));
  const Mlp drawn = mlp;
  std::fill(mlp.input_scale.begin(), mlp.input_scale.end(), 1.0F);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    EXPECT_NEAR(Decide(kernel, mlp, 4, batch)[3], DecideNaively(mlp, batch, 3), 2e-5);
  }
  mlp = drawn;
  std::fill(mlp.input_shift.begin(), mlp.input_shift.end(), 0.0F);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    EXPECT_NEAR(Decide(kernel, mlp, 4, batch)[3], DecideNaively(mlp, batch, 3), 2e-5);
  }
}

// Eq. 12 in plain floats, bit for bit, and what DecideMlp sees up to its reciprocals.
TEST(RawInputs, AreWhatANetworkSeesBeforeItsNormalisation) {
  for (const int num_beams : {1, 7, 20, 33}) {
    const Lidar lidar({num_beams, 5, -60, num_beams > 1 ? 60.0 : -60.0});
    Batch batch(40, lidar);
    DrawSenses(Key(66), lidar, batch);
    for (const RangeCode code : {RangeCode::kRaw, RangeCode::kScaled, RangeCode::kInverse}) {
      for (const int with : {0, 1, 2, 3}) {
        MlpOptions options;
        options.hidden = {};
        options.range_code = code;
        options.output_map = OutputMap::kClamp;
        options.state_inputs = (with & 1) != 0;
        options.goal_inputs = (with & 2) != 0;
        Mlp mlp = MakeMlp(options, num_beams, 3, 100);
        for (const std::size_t slot : {0, 3, 8, 38}) {
          std::vector<float> expected;
          if (mlp.state_inputs) {
            expected = {batch.x[slot], batch.y[slot], batch.sin[slot], batch.cos[slot]};
          }
          if (mlp.goal_inputs) {
            expected.insert(expected.end(), {batch.goal_forward[slot], batch.goal_left[slot]});
          }
          for (int beam = 0; beam < num_beams; ++beam) {
            const float range = batch.ranges[slot * static_cast<std::size_t>(batch.beam_stride) +
                                             static_cast<std::size_t>(beam)];
            expected.push_back(code == RangeCode::kRaw      ? range
                               : code == RangeCode::kScaled ? range / 3.0F
                                                            : 1.0F / (range + 0.1F));
          }
          for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
            std::vector<float> inputs(expected.size());
            RawInputs(kernel, mlp, batch, static_cast<int>(slot), inputs);
            EXPECT_EQ(inputs, expected);
            for (std::size_t input = 0; input < expected.size(); ++input) {
              std::fill(mlp.parameters.begin(), mlp.parameters.end(), 0.0F);
              mlp.parameters[input] = 1;
              EXPECT_NEAR(Decide(kernel, mlp, static_cast<int>(slot) + 1, batch)[slot],
                          expected[input], 3e-7 * std::fabs(expected[input]));
            }
          }
        }
      }
    }
  }
}

// Eq. 13.
TEST(DecideMlp, MapsItsOutputToTheControl) {
  const Lidar lidar(kSymmetricFan);
  Batch batch(16, lidar);
  DrawSenses(Key(63), lidar, batch);
  MlpOptions options;
  options.hidden = {};
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    for (const float output : {-50.0F, -1.0F, -0.5F, 0.0F, 0.25F, 2.0F, 50.0F}) {
      options.output_map = OutputMap::kClamp;
      Mlp clamp = MakeMlp(options, 20, 5, 0.75);
      clamp.parameters.back() = output;
      EXPECT_EQ(Decide(kernel, clamp, 1, batch)[0], std::clamp(output, -0.75F, 0.75F));
      options.output_map = OutputMap::kTanh;
      Mlp tanh = MakeMlp(options, 20, 5, 0.75);
      tanh.parameters.back() = output;
      EXPECT_NEAR(Decide(kernel, tanh, 1, batch)[0], 0.75 * std::tanh(static_cast<double>(output)),
                  3e-7);
      EXPECT_LE(std::fabs(Decide(kernel, tanh, 1, batch)[0]), 0.75F);
    }
  }
}

TEST(DecideMlp, DecidesEachSlotAlone) {
  const Lidar lidar(kSymmetricFan);
  const Mlp mlp = DrawMlp(MlpOptions{}, 20, Key(64));
  Batch batch(64, lidar);
  DrawSenses(Key(65), lidar, batch);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    const std::vector<float> together = Decide(kernel, mlp, 64, batch);
    for (int last = 1; last < 64; ++last) {
      const std::vector<float> fewer = Decide(kernel, mlp, last, batch);
      for (std::size_t slot = 0; slot < fewer.size(); ++slot) {
        ASSERT_EQ(fewer[slot], together[slot]);
      }
    }
  }
}

// With a limit out of reach a clamp lets outputs through as they are. Inputs are those of RawInputs
// after the normalisation, up to its reciprocals.
TEST(MlpTrace, HasWhatEnteredAndWhatLeftTheLayersAndChangesNoControl) {
  std::uint64_t trial = 0;
  for (const Shape& shape : kShapes) {
    const Lidar lidar({shape.num_beams, 5, -60, shape.num_beams > 1 ? 60.0 : -60.0});
    for (const OutputMap map : {OutputMap::kClamp, OutputMap::kTanh}) {
      for (const RangeCode code : {RangeCode::kRaw, RangeCode::kScaled, RangeCode::kInverse}) {
        MlpOptions options;
        options.hidden = shape.hidden;
        options.range_code = code;
        options.output_map = map;
        options.goal_inputs = true;
        const Key key = Key(69).Fork(trial++);
        const Mlp mlp = DrawMlp(options, shape.num_beams, key);
        Mlp unlimited = mlp;
        unlimited.output_map = OutputMap::kClamp;
        unlimited.control_limit = 1e30F;
        Batch batch(40, lidar);
        DrawSenses(key.Fork(4), lidar, batch);
        for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
          const std::vector<float> outputs = Decide(kernel, unlimited, 37, batch);
          const std::vector<float> controls = Decide(kernel, mlp, 37, batch);
          MlpWorkspace workspace(mlp);
          MlpTrace trace(mlp, batch.capacity);
          DecideMlp(kernel, mlp, 37, workspace, batch, &trace);
          std::vector<float> raw(static_cast<std::size_t>(mlp.num_inputs()));
          for (std::size_t slot = 0; slot < 37; ++slot) {
            ASSERT_EQ(trace.outputs[slot], outputs[slot]);
            ASSERT_EQ(batch.control[slot], controls[slot]);
            RawInputs(kernel, mlp, batch, static_cast<int>(slot), raw);
            const float* seen = trace.inputs.data() + slot * static_cast<std::size_t>(trace.stride);
            for (std::size_t input = 0; input < raw.size(); ++input) {
              ASSERT_NEAR(seen[input],
                          std::fma(raw[input], mlp.input_scale[input], mlp.input_shift[input]),
                          4e-6);
            }
          }
          // The map alone makes the controls of the outputs, in slots that exist and no others.
          std::fill(batch.control.begin(), batch.control.end(), 99.0F);
          OutputsToControls(kernel, mlp, 37, trace.outputs, batch);
          for (std::size_t slot = 0; slot < 37; ++slot) {
            ASSERT_EQ(batch.control[slot], controls[slot]);
          }
        }
      }
    }
  }
}

TEST(OutputsToControls, IsTheDocumentedMap) {  // Eq. 13
  Batch batch(40, Lidar(kSymmetricFan));
  AlignedVector<float> outputs(batch.control.size());
  for (std::size_t slot = 0; slot < outputs.size(); ++slot)
    outputs[slot] = Draw(Key(70), slot, -3, 3);
  Mlp mlp = MakeMlp({}, 20, 5, 0.8);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    mlp.output_map = OutputMap::kTanh;
    OutputsToControls(kernel, mlp, 40, outputs, batch);
    for (std::size_t slot = 0; slot < 40; ++slot) {
      EXPECT_NEAR(batch.control[slot], 0.8 * std::tanh(static_cast<double>(outputs[slot])), 2e-7);
    }
    mlp.output_map = OutputMap::kClamp;
    OutputsToControls(kernel, mlp, 40, outputs, batch);
    for (std::size_t slot = 0; slot < 40; ++slot) {
      EXPECT_EQ(batch.control[slot], std::clamp(outputs[slot], -0.8F, 0.8F));
    }
  }
}

}  // namespace
}  // namespace fedgen
