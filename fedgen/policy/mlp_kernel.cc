// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/mlp_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/policy/mlp_kernel.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

// Slots pass through the network in tiles of two vectors. Activations are [unit][slot of the tile], so
// a weight is one broadcast that serves every slot.
constexpr int kTile = 2 * kLanes;

#if HWY_TARGET == HWY_AVX2

/// Writes columns[k][0..7] = rows[0..7][k] for k < 8.
HWY_INLINE void Transpose(const float* rows, int row_stride, F columns[8]) {
  const FloatTag d;
  const hn::Repartition<double, FloatTag> d64;
  F r[8];
  for (int row = 0; row < 8; ++row) r[row] = Load(rows + row * row_stride);
  F pair[8];
  for (int row = 0; row < 8; row += 2) {
    pair[row] = hn::InterleaveLower(d, r[row], r[row + 1]);
    pair[row + 1] = hn::InterleaveUpper(d, r[row], r[row + 1]);
  }
  const auto lower = [&](F a, F b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(d64, hn::BitCast(d64, a), hn::BitCast(d64, b)));
  };
  const auto upper = [&](F a, F b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(d64, hn::BitCast(d64, a), hn::BitCast(d64, b)));
  };
  F quad[8];  // quad[k] and quad[k + 4]: columns k and k + 4 of rows 0..3, then of rows 4..7
  for (int half = 0; half < 2; ++half) {
    const F* p = pair + 4 * half;
    quad[4 * half + 0] = lower(p[0], p[2]);
    quad[4 * half + 1] = upper(p[0], p[2]);
    quad[4 * half + 2] = lower(p[1], p[3]);
    quad[4 * half + 3] = upper(p[1], p[3]);
  }
  for (int column = 0; column < 4; ++column) {
    columns[column] = hn::ConcatLowerLower(d, quad[column + 4], quad[column]);
    columns[column + 4] = hn::ConcatUpperUpper(d, quad[column + 4], quad[column]);
  }
}
constexpr int kBeamsAtOnce = 8;

#else

inline void Transpose(const float* rows, int /*row_stride*/, F columns[1]) { columns[0] = *rows; }
constexpr int kBeamsAtOnce = 1;

#endif

/// Eq. 12.
HWY_INLINE F EncodeRange(const Mlp& mlp, F range) {
  switch (mlp.range_code) {
    case RangeCode::kRaw:
      return range;
    case RangeCode::kScaled:
      return range * Set(1.0f / mlp.max_range);
    case RangeCode::kInverse:
      return Set(1.0f) / (range + Set(mlp.range_offset));
  }
  return range;
}

// Inputs of the tile that starts at `slot`, to [num_inputs][kTile].
HWY_INLINE void Encode(const Mlp& mlp, const Batch& batch, int slot, float* inputs) {
  for (int part = 0; part < kTile; part += kLanes) {
    const int at = slot + part;
    int input = 0;
    const auto put = [&](F raw) HWY_ATTR {
      const auto index = static_cast<std::size_t>(input);
      const F normalised = Fma(raw, Set(mlp.input_scale[index]), Set(mlp.input_shift[index]));
      Store(normalised, inputs + input * kTile + part);
      ++input;
    };
    if (mlp.state_inputs) {
      put(Load(batch.x.data() + at));
      put(Load(batch.y.data() + at));
      put(Load(batch.sin.data() + at));
      put(Load(batch.cos.data() + at));
    }
    if (mlp.goal_inputs) {
      put(Load(batch.goal_forward.data() + at));
      put(Load(batch.goal_left.data() + at));
    }
    const float* rows = batch.ranges.data() + static_cast<std::ptrdiff_t>(at) * batch.beam_stride;
    for (int beam = 0; beam < mlp.num_beams; beam += kBeamsAtOnce) {
      F columns[kBeamsAtOnce];
      Transpose(rows + beam, batch.beam_stride, columns);
      const int count = mlp.num_beams - beam < kBeamsAtOnce ? mlp.num_beams - beam : kBeamsAtOnce;
      for (int column = 0; column < count; ++column) put(EncodeRange(mlp, columns[column]));
    }
  }
}

// kOutputs units of a layer for one tile: 2 kOutputs accumulators, which is what hides the latency of
// the multiply-adds and still fits the registers.
template <int kOutputs, bool kActivate>
HWY_INLINE void Units(Activation activation, int num_inputs, const float* weights,
                      const float* biases, const float* inputs, float* outputs) {
  F sum0[kOutputs];
  F sum1[kOutputs];
  for (int unit = 0; unit < kOutputs; ++unit) sum0[unit] = sum1[unit] = Set(biases[unit]);
  for (int input = 0; input < num_inputs; ++input) {
    const F x0 = Load(inputs + input * kTile);
    const F x1 = Load(inputs + input * kTile + kLanes);
    for (int unit = 0; unit < kOutputs; ++unit) {
      const F weight = Set(weights[unit * num_inputs + input]);
      sum0[unit] = Fma(weight, x0, sum0[unit]);
      sum1[unit] = Fma(weight, x1, sum1[unit]);
    }
  }
  for (int unit = 0; unit < kOutputs; ++unit) {
    if (kActivate) {
      if (activation == Activation::kRelu) {
        sum0[unit] = Max(sum0[unit], Set(0.0f));
        sum1[unit] = Max(sum1[unit], Set(0.0f));
      } else {
        sum0[unit] = Tanh(sum0[unit]);
        sum1[unit] = Tanh(sum1[unit]);
      }
    }
    Store(sum0[unit], outputs + unit * kTile);
    Store(sum1[unit], outputs + unit * kTile + kLanes);
  }
}

template <bool kActivate>
HWY_INLINE void Layer(Activation activation, int num_inputs, int num_outputs, const float* weights,
                      const float* inputs, float* outputs) {
  const float* biases = weights + static_cast<std::ptrdiff_t>(num_inputs) * num_outputs;
  int unit = 0;
  for (; unit + 5 <= num_outputs; unit += 5) {
    Units<5, kActivate>(activation, num_inputs, weights + unit * num_inputs, biases + unit, inputs,
                        outputs + unit * kTile);
  }
  for (; unit < num_outputs; ++unit) {
    Units<1, kActivate>(activation, num_inputs, weights + unit * num_inputs, biases + unit, inputs,
                        outputs + unit * kTile);
  }
}

/// Eq. 13.
HWY_INLINE F Control(const Mlp& mlp, F output) {
  const F limit = Set(mlp.control_limit);
  if (mlp.output_map == OutputMap::kTanh) return limit * Tanh(output);
  return Clamp(output, Set(0.0f) - limit, limit);
}

void DecideMlpLanes(const Mlp& mlp, int last, MlpWorkspace& workspace, Batch& batch) {
  for (int slot = 0; slot < last; slot += kTile) {
    float* inputs = workspace.even.data();
    float* outputs = workspace.odd.data();
    Encode(mlp, batch, slot, inputs);
    const float* weights = mlp.parameters.data();
    for (int layer = 0; layer < mlp.num_layers(); ++layer) {
      const int num_inputs = mlp.layer_inputs(layer);
      const int num_outputs = mlp.layer_outputs(layer);
      if (layer + 1 < mlp.num_layers()) {
        Layer<true>(mlp.activation, num_inputs, num_outputs, weights, inputs, outputs);
      } else {
        Layer<false>(mlp.activation, num_inputs, num_outputs, weights, inputs, outputs);
      }
      weights += static_cast<std::ptrdiff_t>(num_inputs + 1) * num_outputs;
      float* swap = inputs;
      inputs = outputs;
      outputs = swap;
    }
    Store(Control(mlp, Load(inputs)), batch.control.data() + slot);
    Store(Control(mlp, Load(inputs + kLanes)), batch.control.data() + slot + kLanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedgen {

MlpWorkspace::MlpWorkspace(const Mlp& mlp)
    : even(static_cast<std::size_t>(mlp.widest_layer()) * kTile),
      odd(static_cast<std::size_t>(mlp.widest_layer()) * kTile) {}

void DecideMlp(Kernel kernel, const Mlp& mlp, int last, MlpWorkspace& workspace, Batch& batch) {
  FEDGEN_LANES_DISPATCH(kernel, DecideMlpLanes)(mlp, last, workspace, batch);
}

}  // namespace fedgen
#endif
