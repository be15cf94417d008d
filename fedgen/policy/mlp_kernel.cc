// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/mlp_kernel.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/policy/mlp_kernel.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

// Slots pass through the network in tiles of four vectors. Activations are [unit][slot of the
// tile], so a weight is one broadcast that serves every slot.
constexpr int kVectors = 4;
constexpr int kTile = kVectors * kLanes;

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

/// Eq. 12. DecideMlp multiplies by reciprocals, which is faster than a division and off by less
/// than 3e-7. RawInputs divides (kDivides): normalisations are measured so, and are part of
/// policies.
template <RangeCode kCode, bool kDivides>
HWY_INLINE F EncodeRange(const Mlp& mlp, F range) {
  if (kCode == RangeCode::kScaled) {
    return kDivides ? range / Set(mlp.max_range) : range * Set(1.0f / mlp.max_range);
  }
  if (kCode == RangeCode::kInverse) {
    const F sum = range + Set(mlp.range_offset);
    return kDivides ? Set(1.0f) / sum : Reciprocal(sum);
  }
  return range;
}

/// What enters a network before its normalisation, in its order (Eq. 11, 12): put(raw, input) for
/// the kLanes robots from `slot` on. Beams come in eights, so up to seven inputs past the last are
/// put too.
template <RangeCode kCode, bool kDivides, typename Put>
HWY_INLINE void PutInputs(const Mlp& mlp, const Batch& batch, int slot, const Put& put) {
  int input = 0;
  if (mlp.state_inputs) {
    put(Load(batch.x.data() + slot), input++);
    put(Load(batch.y.data() + slot), input++);
    put(Load(batch.sin.data() + slot), input++);
    put(Load(batch.cos.data() + slot), input++);
  }
  if (mlp.goal_inputs) {
    put(Load(batch.goal_forward.data() + slot), input++);
    put(Load(batch.goal_left.data() + slot), input++);
  }
  const float* rows = batch.ranges.data() + static_cast<std::ptrdiff_t>(slot) * batch.beam_stride;
  for (int beam = 0; beam < mlp.num_beams; beam += kBeamsAtOnce) {
    F columns[kBeamsAtOnce];
    Transpose(rows + beam, batch.beam_stride, columns);
    for (int column = 0; column < kBeamsAtOnce; ++column) {
      put(EncodeRange<kCode, kDivides>(mlp, columns[column]), input + beam + column);
    }
  }
}

/// Calls work.operator()<code>(): the code becomes known to the compiler.
template <typename Work>
HWY_INLINE void WithRangeCode(RangeCode code, const Work& work) {
  switch (code) {
    case RangeCode::kRaw:
      return work.template operator()<RangeCode::kRaw>();
    case RangeCode::kScaled:
      return work.template operator()<RangeCode::kScaled>();
    case RangeCode::kInverse:
      return work.template operator()<RangeCode::kInverse>();
  }
}

/// Inputs of the tile that starts at `slot`, to [num_inputs + 7][kTile].
template <RangeCode kCode, bool kNormalise>
HWY_INLINE void Encode(const Mlp& mlp, const MlpWorkspace& workspace, const Batch& batch, int slot,
                       float* inputs) {
  const float* scale = workspace.scale.data();
  const float* shift = workspace.shift.data();
  for (int part = 0; part < kTile; part += kLanes) {
    PutInputs<kCode, false>(mlp, batch, slot + part, [&](F raw, int input) HWY_ATTR {
      if (kNormalise) raw = Fma(raw, Set(scale[input]), Set(shift[input]));
      Store(raw, inputs + input * kTile + part);
    });
  }
}

HWY_INLINE void EncodeTile(const Mlp& mlp, const MlpWorkspace& workspace, const Batch& batch,
                           int slot, float* inputs) {
  WithRangeCode(mlp.range_code, [&]<RangeCode kCode>() HWY_ATTR {
    if (workspace.normalises) {
      Encode<kCode, true>(mlp, workspace, batch, slot, inputs);
    } else {
      Encode<kCode, false>(mlp, workspace, batch, slot, inputs);
    }
  });
}

void RawInputsLanes(const Mlp& mlp, const Batch& batch, int slot, float* inputs) {
  const int lane = slot % kLanes;
  const int num_inputs = mlp.num_inputs();
  alignas(32) float group[kLanes];
  WithRangeCode(mlp.range_code, [&]<RangeCode kCode>() HWY_ATTR {
    PutInputs<kCode, true>(mlp, batch, slot - lane, [&](F raw, int input) HWY_ATTR {
      Store(raw, group);
      if (input < num_inputs) inputs[input] = group[lane];
    });
  });
}

// kOutputs units of a layer for kWidth vectors of slots. The kOutputs * kWidth sums run side by
// side: enough of them to hide the latency of a multiply-add, few enough to stay in registers.
template <int kOutputs, int kWidth, bool kActivate>
HWY_INLINE void Units(Activation activation, int num_inputs, const float* weights,
                      const float* biases, const float* inputs, float* outputs) {
  F sum[kOutputs][kWidth];
  for (int unit = 0; unit < kOutputs; ++unit) {
    for (int v = 0; v < kWidth; ++v) sum[unit][v] = Set(biases[unit]);
  }
  for (int input = 0; input < num_inputs; ++input) {
    F x[kWidth];
    for (int v = 0; v < kWidth; ++v) x[v] = Load(inputs + input * kTile + v * kLanes);
    for (int unit = 0; unit < kOutputs; ++unit) {
      const F weight = Set(weights[unit * num_inputs + input]);
      for (int v = 0; v < kWidth; ++v) sum[unit][v] = Fma(weight, x[v], sum[unit][v]);
    }
  }
  for (int unit = 0; unit < kOutputs; ++unit) {
    for (int v = 0; v < kWidth; ++v) {
      F value = sum[unit][v];
      if (kActivate) {
        value = activation == Activation::kRelu ? Max(value, Set(0.0f)) : Tanh(value);
      }
      Store(value, outputs + unit * kTile + v * kLanes);
    }
  }
}

template <bool kActivate>
HWY_INLINE void Layer(Activation activation, int num_inputs, int num_outputs, const float* weights,
                      const float* inputs, float* outputs) {
  const float* biases = weights + static_cast<std::ptrdiff_t>(num_inputs) * num_outputs;
  int unit = 0;
  for (; unit + 5 <= num_outputs; unit += 5) {
    for (int part = 0; part < kTile; part += 2 * kLanes) {
      Units<5, 2, kActivate>(activation, num_inputs, weights + unit * num_inputs, biases + unit,
                             inputs + part, outputs + unit * kTile + part);
    }
  }
  for (; unit < num_outputs; ++unit) {
    Units<1, kVectors, kActivate>(activation, num_inputs, weights + unit * num_inputs,
                                  biases + unit, inputs, outputs + unit * kTile);
  }
}

/// Eq. 13.
HWY_INLINE F Control(const Mlp& mlp, F output) {
  const F limit = Set(mlp.control_limit);
  if (mlp.output_map == OutputMap::kTanh) return limit * Tanh(output);
  return Clamp(output, Set(0.0f) - limit, limit);
}

/// The tile's inputs as rows, one for each slot.
HWY_INLINE void TraceInputs(int num_inputs, int slot, const float* inputs, MlpTrace& trace) {
  float* rows = trace.inputs.data() + static_cast<std::ptrdiff_t>(slot) * trace.stride;
  for (int lane = 0; lane < kTile; ++lane) {
    float* row = rows + static_cast<std::ptrdiff_t>(lane) * trace.stride;
    for (int input = 0; input < num_inputs; ++input) row[input] = inputs[input * kTile + lane];
  }
}

void OutputsToControlsLanes(const Mlp& mlp, int last, const float* outputs, Batch& batch) {
  for (int slot = 0; slot < last; slot += kLanes) {
    Store(Control(mlp, Load(outputs + slot)), batch.control.data() + slot);
  }
}

void DecideMlpLanes(const Mlp& mlp, int last, MlpWorkspace& workspace, Batch& batch,
                    MlpTrace* trace) {
  for (int slot = 0; slot < last; slot += kTile) {
    float* inputs = workspace.even.data();
    float* outputs = workspace.odd.data();
    EncodeTile(mlp, workspace, batch, slot, inputs);
    if (trace != nullptr) TraceInputs(mlp.num_inputs(), slot, inputs, *trace);
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
    for (int part = 0; part < kTile; part += kLanes) {
      const F output = Load(inputs + part);
      if (trace != nullptr) Store(output, trace->outputs.data() + slot + part);
      Store(Control(mlp, output), batch.control.data() + slot + part);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedgen {

MlpWorkspace::MlpWorkspace(const Mlp& mlp)
    : even(static_cast<std::size_t>(mlp.widest_layer() + kLaneGroup) * kTile),
      odd(even.size()),
      scale(static_cast<std::size_t>(mlp.num_inputs() + kLaneGroup), 1.0F),
      shift(scale.size(), 0.0F) {
  const auto is = [](float value) { return [value](float other) { return other == value; }; };
  normalises = !std::all_of(mlp.input_scale.begin(), mlp.input_scale.end(), is(1.0F)) ||
               !std::all_of(mlp.input_shift.begin(), mlp.input_shift.end(), is(0.0F));
  std::copy(mlp.input_scale.begin(), mlp.input_scale.end(), scale.begin());
  std::copy(mlp.input_shift.begin(), mlp.input_shift.end(), shift.begin());
}

MlpTrace::MlpTrace(const Mlp& mlp, int capacity)
    : stride(PadToLaneGroup(mlp.num_inputs())),
      inputs(static_cast<std::size_t>(capacity) * static_cast<std::size_t>(stride)),
      outputs(static_cast<std::size_t>(capacity)) {}

void RawInputs(Kernel kernel, const Mlp& mlp, const Batch& batch, int slot,
               std::span<float> inputs) {
  FEDGEN_CHECK(inputs.size() == static_cast<std::size_t>(mlp.num_inputs()), "{} for {} inputs",
               inputs.size(), mlp.num_inputs());
  FEDGEN_LANES_DISPATCH(kernel, RawInputsLanes)(mlp, batch, slot, inputs.data());
}

void DecideMlp(Kernel kernel, const Mlp& mlp, int last, MlpWorkspace& workspace, Batch& batch,
               MlpTrace* trace) {
  FEDGEN_LANES_DISPATCH(kernel, DecideMlpLanes)(mlp, last, workspace, batch, trace);
}

void OutputsToControls(Kernel kernel, const Mlp& mlp, int last, std::span<const float> outputs,
                       Batch& batch) {
  FEDGEN_CHECK(outputs.size() >= batch.control.size(), "{} outputs for {} slots", outputs.size(),
               batch.control.size());
  FEDGEN_LANES_DISPATCH(kernel, OutputsToControlsLanes)(mlp, last, outputs.data(), batch);
}

}  // namespace fedgen
#endif
