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

/// What enters the network of one robot before the normalisation, in the network's order (Eq. 11,
/// 12): inputs is [num_inputs]. Ranges are divided where DecideMlp multiplies by reciprocals, so
/// the two may differ by 3e-7 of an input.
void RawInputs(Kernel kernel, const Mlp& mlp, const Batch& batch, int slot,
               std::span<float> inputs);

/// Eq. 11 to 13 for slots [0, last): reads what the robots sense, writes control. Each sum runs
/// over its inputs in order, starting at the bias, with one fused multiply-add per input.
void DecideMlp(Kernel kernel, const Mlp& mlp, int last, MlpWorkspace& workspace, Batch& batch);

}  // namespace fedgen
