// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/network_kernel.h"

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/learn/network_kernel.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

// One product serves the forward pass, the deltas and the weights' gradients:
//   C[m][n] = finish(start[n] + sum over k, in order, of A(m, k) B[k][n]).
// Lanes run over n. A is broadcast, so it may be a matrix or the transpose of one.

struct Left {
  const float* data;  // A(m, k) = data[m m_step + k k_step]
  std::ptrdiff_t m_step;
  std::ptrdiff_t k_step;
};

struct Right {
  const float* data;  // [depth][n, padded to 8]
  std::ptrdiff_t stride;
};

/// kRows x kVectors sums side by side: enough to hide the latency of a multiply-add, few enough to
/// stay in registers. start == nullptr is 0. finish(sum, at) makes what is stored at c[at].
template <int kRows, int kVectors, typename Finish>
HWY_INLINE void Tile(int depth, Left a, Right b, const float* start, float* c, std::ptrdiff_t at,
                     std::ptrdiff_t stride, const Finish& finish) {
  F sum[kRows][kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const F first = start == nullptr ? Set(0.0f) : Load(start + v * kLanes);
    for (int m = 0; m < kRows; ++m) sum[m][v] = first;
  }
  for (int k = 0; k < depth; ++k) {
    F right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = Load(b.data + v * kLanes);
    for (int m = 0; m < kRows; ++m) {
      const F left = Set(a.data[m * a.m_step]);
      for (int v = 0; v < kVectors; ++v) sum[m][v] = Fma(left, right[v], sum[m][v]);
    }
    a.data += a.k_step;
    b.data += b.stride;
  }
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) {
      const std::ptrdiff_t here = at + m * stride + v * kLanes;
      Store(finish(sum[m][v], here), c + here);
    }
  }
}

/// kVectors vectors of columns from `column` on, for all rows.
template <int kRows, int kVectors, typename Finish>
HWY_INLINE void Strip(int num_rows, int column, int depth, Left a, Right b, const float* start,
                      float* c, std::ptrdiff_t stride, const Finish& finish) {
  b.data += column;
  if (start != nullptr) start += column;
  int m = 0;
  for (; m + kRows <= num_rows; m += kRows, a.data += kRows * a.m_step) {
    Tile<kRows, kVectors>(depth, a, b, start, c, column + m * stride, stride, finish);
  }
  for (; m < num_rows; ++m, a.data += a.m_step) {
    Tile<1, kVectors>(depth, a, b, start, c, column + m * stride, stride, finish);
  }
}

/// C is [num_rows][num_columns, padded to 8].
template <typename Finish>
HWY_INLINE void Multiply(int num_rows, int num_columns, int depth, Left a, Right b,
                         const float* start, float* c, const Finish& finish) {
  const std::ptrdiff_t stride = PadToLaneGroup(num_columns);
  int column = 0;
  while (column < num_columns) {
    // Threes and twos make every number but one.
    const int left = (num_columns - column + kLanes - 1) / kLanes;
    if (left == 3 || left >= 5) {
      Strip<4, 3>(num_rows, column, depth, a, b, start, c, stride, finish);
      column += 3 * kLanes;
    } else if (left >= 2) {
      Strip<6, 2>(num_rows, column, depth, a, b, start, c, stride, finish);
      column += 2 * kLanes;
    } else {
      Strip<8, 1>(num_rows, column, depth, a, b, start, c, stride, finish);
      column += kLanes;
    }
  }
}

// Rows lie anywhere, and memory is slow to answer: those that come later are asked for beforehand.
void GatherRowsLanes(const float* from, int stride, std::span<const std::uint32_t> which,
                     float* to) {
  constexpr std::size_t kAhead = 12;      // rows
  constexpr std::ptrdiff_t kInLine = 16;  // floats in a line of the cache
  const auto row = [&](std::size_t at)
                       HWY_ATTR { return from + static_cast<std::ptrdiff_t>(which[at]) * stride; };
  for (std::size_t at = 0; at < which.size(); ++at, to += stride) {
    const float* later = row(std::min(at + kAhead, which.size() - 1));
    for (std::ptrdiff_t line = 0; line < stride; line += kInLine) __builtin_prefetch(later + line);
    const float* here = row(at);
    for (std::ptrdiff_t lane = 0; lane < stride; lane += kLanes)
      Store(Load(here + lane), to + lane);
  }
}

/// What enters layer l: the samples, or what the layer below it gave.
HWY_INLINE InputRows InputsOf(const PackedNetwork& network, const InputRows& rows,
                              const NetworkWorkspace& workspace, std::size_t l) {
  if (l == 0) return rows;
  return {workspace.activations[l - 1].data(), PadToLaneGroup(network.layers()[l].num_inputs),
          rows.count};
}

void ForwardLanes(const PackedNetwork& network, const InputRows& rows, NetworkWorkspace& workspace,
                  float* outputs) {
  const int num_rows = rows.count;
  const std::size_t last = network.layers().size() - 1;
  for (std::size_t l = 0; l <= last; ++l) {
    const PackedNetwork::Layer& layer = network.layers()[l];
    const InputRows inputs = InputsOf(network, rows, workspace, l);
    const auto multiply = [&](const auto& finish) HWY_ATTR {
      Multiply(num_rows, layer.num_outputs, layer.num_inputs, Left{inputs.data, inputs.stride, 1},
               Right{layer.forward.data(), PadToLaneGroup(layer.num_outputs)}, layer.biases.data(),
               workspace.activations[l].data(), finish);
    };
    if (l == last) {
      multiply([](F sum, std::ptrdiff_t) HWY_ATTR { return sum; });
    } else if (network.shape().activation == Activation::kRelu) {
      multiply([](F sum, std::ptrdiff_t) HWY_ATTR { return Max(sum, Set(0.0f)); });
    } else {
      multiply([](F sum, std::ptrdiff_t) HWY_ATTR { return Tanh(sum); });
    }
  }
  const float* output = workspace.activations[last].data();
  for (int r = 0; r < num_rows; ++r) outputs[r] = output[r * kLaneGroup];
}

/// The gradients of a layer's weights and biases from its deltas d, [num_rows][num_outputs], and
/// its inputs, [num_rows][num_inputs].
HWY_INLINE void LayerGradient(const PackedNetwork::Layer& layer, const float* deltas,
                              const InputRows& inputs, float* scratch, float* gradient) {
  const int num_rows = inputs.count;
  const int padded_inputs = PadToLaneGroup(layer.num_inputs);
  const int padded_outputs = PadToLaneGroup(layer.num_outputs);
  const auto plain = [](F sum, std::ptrdiff_t) HWY_ATTR { return sum; };
  Multiply(layer.num_outputs, layer.num_inputs, num_rows, Left{deltas, 1, padded_outputs},
           Right{inputs.data, inputs.stride}, nullptr, scratch, plain);
  for (int output = 0; output < layer.num_outputs; ++output) {
    gradient = std::copy_n(scratch + output * padded_inputs, layer.num_inputs, gradient);
  }
  const float one = 1;  // the input of a bias
  Multiply(1, layer.num_outputs, num_rows, Left{&one, 0, 0}, Right{deltas, padded_outputs}, nullptr,
           scratch, plain);
  std::copy_n(scratch, layer.num_outputs, gradient);
}

/// The deltas of the layer below: (W^T d) f', where f' follows from h = f(a).
HWY_INLINE void DeltasBelow(const PackedNetwork::Layer& layer, Activation activation, int num_rows,
                            const float* deltas, const float* inputs, float* below) {
  const auto multiply = [&](const auto& finish) HWY_ATTR {
    Multiply(num_rows, layer.num_inputs, layer.num_outputs,
             Left{deltas, PadToLaneGroup(layer.num_outputs), 1},
             Right{layer.backward.data(), PadToLaneGroup(layer.num_inputs)}, nullptr, below,
             finish);
  };
  if (activation == Activation::kRelu) {
    multiply([inputs](F sum, std::ptrdiff_t at)
                 HWY_ATTR { return Select(Load(inputs + at) > Set(0.0f), sum, Set(0.0f)); });
  } else {
    multiply([inputs](F sum, std::ptrdiff_t at) HWY_ATTR {
      const F h = Load(inputs + at);
      return sum * NegFma(h, h, Set(1.0f));
    });
  }
}

void BackwardLanes(const PackedNetwork& network, const InputRows& rows,
                   std::span<const float> output_gradients, NetworkWorkspace& workspace,
                   std::span<float> gradient) {
  const int num_rows = rows.count;
  float* deltas = workspace.even.data();
  float* below = workspace.odd.data();
  for (int r = 0; r < num_rows; ++r) {
    deltas[r * kLaneGroup] = output_gradients[static_cast<std::size_t>(r)];
  }
  float* layer_gradient = gradient.data() + gradient.size();
  for (std::size_t l = network.layers().size(); l-- > 0;) {
    const PackedNetwork::Layer& layer = network.layers()[l];
    const InputRows inputs = InputsOf(network, rows, workspace, l);
    layer_gradient -= (layer.num_inputs + 1) * layer.num_outputs;
    LayerGradient(layer, deltas, inputs, workspace.gradient.data(), layer_gradient);
    if (l == 0) break;
    DeltasBelow(layer, network.shape().activation, num_rows, deltas, inputs.data, below);
    std::swap(deltas, below);
  }
}

// With d the move of the output since the sample was driven, n the noise and s its spread, the
// ratio of probabilities is exp(n d / s - d^2 / (2 s^2)).
void SurrogateGradientsLanes(const SurrogateSamples& samples, int num_rows, float spread,
                             float clip, float* gradients) {
  const F inverse = Set(1.0f / spread);
  const F high = Set(1.0f + clip);
  const F low = Set(1.0f - clip);
  const F zero = Set(0.0f);
  for (int row = 0; row < num_rows; row += kLanes) {
    const F move = (Load(samples.outputs.data() + row) - Load(samples.old_outputs.data() + row)) *
                   inverse;  // in spreads
    const F noise = Load(samples.noise.data() + row);
    const F advantage = Load(samples.advantages.data() + row);
    const F ratio = Exp(move * Fma(Set(-0.5f), move, noise));
    const Mask done = Or(And(advantage > zero, ratio > high), And(advantage < zero, ratio < low));
    const F gradient = (zero - advantage) * ratio * (noise - move) * inverse;
    Store(Select(done, zero, gradient), gradients + row);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fedgen/base/check.h"

namespace fedgen {
namespace {

std::size_t Area(int rows, int columns) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}

}  // namespace

std::size_t NumParameters(const NetworkShape& shape) {
  std::size_t count = 0;
  for (std::size_t l = 0; l + 1 < shape.sizes.size(); ++l) {
    count += Area(shape.sizes[l] + 1, shape.sizes[l + 1]);
  }
  return count;
}

NetworkShape NetworkShapeOf(const Mlp& mlp) {
  NetworkShape shape{{mlp.num_inputs()}, mlp.activation};
  shape.sizes.insert(shape.sizes.end(), mlp.hidden.begin(), mlp.hidden.end());
  shape.sizes.push_back(1);
  return shape;
}

PackedNetwork::PackedNetwork(NetworkShape shape) : shape_(std::move(shape)) {
  const std::vector<int>& sizes = shape_.sizes;
  FEDGEN_CHECK(sizes.size() >= 2 && sizes.back() == 1, "{} sizes", sizes.size());
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    Layer layer{sizes[l], sizes[l + 1], {}, {}, {}};
    FEDGEN_CHECK(layer.num_inputs > 0 && layer.num_outputs > 0, "layer {} is empty", l);
    layer.forward.resize(Area(layer.num_inputs, PadToLaneGroup(layer.num_outputs)));
    layer.biases.resize(Area(1, PadToLaneGroup(layer.num_outputs)));
    if (l > 0) layer.backward.resize(Area(layer.num_outputs, PadToLaneGroup(layer.num_inputs)));
    layers_.push_back(std::move(layer));
  }
}

void PackedNetwork::Pack(std::span<const float> parameters) {
  FEDGEN_CHECK(parameters.size() == NumParameters(shape_), "{} parameters of {}", parameters.size(),
               NumParameters(shape_));
  const float* parameter = parameters.data();
  for (Layer& layer : layers_) {
    for (int output = 0; output < layer.num_outputs; ++output, parameter += layer.num_inputs) {
      float* column = layer.forward.data() + output;
      for (int input = 0; input < layer.num_inputs; ++input) {
        column[input * PadToLaneGroup(layer.num_outputs)] = parameter[input];
      }
      if (layer.backward.empty()) continue;
      std::copy_n(parameter, layer.num_inputs,
                  layer.backward.data() + output * PadToLaneGroup(layer.num_inputs));
    }
    std::copy_n(parameter, layer.num_outputs, layer.biases.data());
    parameter += layer.num_outputs;
  }
}

NetworkWorkspace::NetworkWorkspace(const NetworkShape& shape) {
  int widest = kLaneGroup;  // the output's
  std::size_t largest = 0;
  for (std::size_t l = 0; l < shape.sizes.size(); ++l) {
    const int padded = PadToLaneGroup(shape.sizes[l]);
    if (l > 0) activations.emplace_back(Area(kRows, padded));
    if (l + 1 == shape.sizes.size()) break;
    if (l > 0) widest = std::max(widest, padded);
    largest = std::max(largest, Area(shape.sizes[l + 1], padded));  // room for the biases too
  }
  even.resize(Area(kRows, widest));
  odd.resize(even.size());
  gradient.resize(largest);
}

void GatherRows(Kernel kernel, const float* from, int stride, std::span<const std::uint32_t> which,
                float* to) {
  FEDGEN_CHECK(stride % kLaneGroup == 0, "stride {}", stride);
  FEDGEN_LANES_DISPATCH(kernel, GatherRowsLanes)(from, stride, which, to);
}

void Forward(Kernel kernel, const PackedNetwork& network, const InputRows& rows,
             NetworkWorkspace& workspace, std::span<float> outputs) {
  FEDGEN_CHECK(rows.count <= NetworkWorkspace::kRows && std::ssize(outputs) == rows.count,
               "{} rows, {} outputs", rows.count, outputs.size());
  FEDGEN_CHECK(rows.stride % kLaneGroup == 0 && rows.stride >= network.shape().sizes[0],
               "stride {} of {} inputs", rows.stride, network.shape().sizes[0]);
  workspace.num_rows = rows.count;
  FEDGEN_LANES_DISPATCH(kernel, ForwardLanes)(network, rows, workspace, outputs.data());
}

void Backward(Kernel kernel, const PackedNetwork& network, const InputRows& rows,
              std::span<const float> output_gradients, NetworkWorkspace& workspace,
              std::span<float> gradient) {
  FEDGEN_CHECK(rows.count == workspace.num_rows && std::ssize(output_gradients) == rows.count,
               "{} rows and {} gradients after {} rows", rows.count, output_gradients.size(),
               workspace.num_rows);
  FEDGEN_CHECK(gradient.size() == NumParameters(network.shape()), "{} of {}", gradient.size(),
               NumParameters(network.shape()));
  FEDGEN_LANES_DISPATCH(kernel, BackwardLanes)
  (network, rows, output_gradients, workspace, gradient);
}

void SurrogateGradients(Kernel kernel, const SurrogateSamples& samples, int num_rows, float spread,
                        float clip, std::span<float> gradients) {
  FEDGEN_CHECK(gradients.size() >= static_cast<std::size_t>(NetworkWorkspace::kRows), "{}",
               gradients.size());
  FEDGEN_LANES_DISPATCH(kernel, SurrogateGradientsLanes)
  (samples, num_rows, spread, clip, gradients.data());
}

}  // namespace fedgen
#endif
