// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "fedgen/base/aligned.h"
#include "fedgen/base/kernel.h"
#include "fedgen/policy/mlp.h"
#include "fedgen/sim/batch.h"

namespace fedgen {

/// Room for the activations of the slots that pass through a network together, allocated once.
struct MlpWorkspace {
  explicit MlpWorkspace(const Mlp& mlp);

  static constexpr int kTile = 4 * kLaneGroup;  // slots
  AlignedVector<float> even, odd;               // [widest_layer + 8][kTile]; layers alternate
  AlignedVector<float> scale, shift;            // [num_inputs + 8] of the normalisation, padded
  bool normalises;                              // it is not the identity
};

/// What a network saw and said while it decided, for who learns from it: allocated once.
struct MlpTrace {
  MlpTrace(const Mlp& mlp, int capacity);

  int stride;                    // of a row of inputs
  AlignedVector<float> inputs;   // [capacity][stride] normalised, as they enter the first layer
  AlignedVector<float> outputs;  // [capacity] o, before it becomes a control (Eq. 13)
};

/// What enters the network of one robot before the normalisation, in the network's order (Eq. 11,
/// 12): inputs is [num_inputs]. Ranges are divided where DecideMlp multiplies by reciprocals, so
/// the two may differ by 3e-7 of an input.
void RawInputs(Kernel kernel, const Mlp& mlp, const Batch& batch, int slot,
               std::span<float> inputs);

/// Eq. 11 to 13 for slots [0, last): reads what the robots sense, writes control. Each sum runs
/// over its inputs in order, starting at the bias, with one fused multiply-add per input. With a
/// trace, what was seen and said is written there too.
void DecideMlp(Kernel kernel, const Mlp& mlp, int last, MlpWorkspace& workspace, Batch& batch,
               MlpTrace* trace = nullptr);

/// Eq. 13 for slots [0, last): controls from outputs.
void OutputsToControls(Kernel kernel, const Mlp& mlp, int last, std::span<const float> outputs,
                       Batch& batch);

}  // namespace fedgen
