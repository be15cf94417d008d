// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fedgen/base/aligned.h"
#include "fedgen/base/kernel.h"
#include "fedgen/policy/mlp.h"

namespace fedgen {

// Networks of dense layers with one output for many samples at once, and the gradient of a weighted
// sum of their outputs by backpropagation. A policy is one of them (before its output map), a
// critic another.
//
//   PackedNetwork network(shape);           // shared by all threads
//   network.Pack(parameters);               // after every change of the parameters
//   NetworkWorkspace workspace(shape);      // one per thread
//   Forward(kernel, network, rows, workspace, outputs);
//   Backward(kernel, network, rows, output_gradients, workspace, gradient);
//
// Eq. 51: with h_0 = x, a_l = W_l h_{l-1} + b_l, h_l = f(a_l), output o = a_L, and d_l = dE / da_l:
//   d_{l-1} = (W_l^T d_l) f'(a_{l-1}),  dE/dW_l = sum over samples of d_l h_{l-1}^T,
//   dE/db_l = sum over samples of d_l.
// Every number is one chain of fused multiply-adds in a fixed order, so both kernels give the same
// bits. Nothing here allocates but the constructors.

/// Parameters are laid out as Mlp::parameters: layer after layer, weights [outputs][inputs], then
/// biases [outputs].
struct NetworkShape {
  std::vector<int> sizes;  // inputs, hidden layers, 1
  Activation activation = Activation::kRelu;

  int num_layers() const { return static_cast<int>(sizes.size()) - 1; }
};

std::size_t NumParameters(const NetworkShape& shape);

/// Of a policy, whose parameters are laid out alike.
NetworkShape NetworkShapeOf(const Mlp& mlp);

/// Parameters in the layouts that the products read. Any number of threads may read it.
class PackedNetwork {
 public:
  struct Layer {
    int num_inputs = 0;
    int num_outputs = 0;
    AlignedVector<float> forward;   // [num_inputs][num_outputs, padded to 8] weights, transposed
    AlignedVector<float> biases;    // [num_outputs, padded]
    AlignedVector<float> backward;  // [num_outputs][num_inputs, padded]; empty in the first layer
  };

  explicit PackedNetwork(NetworkShape shape);

  /// parameters: [NumParameters].
  void Pack(std::span<const float> parameters);

  const NetworkShape& shape() const { return shape_; }
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  NetworkShape shape_;
  std::vector<Layer> layers_;
};

/// Inputs of samples that pass together: those of sample r begin at data + r stride.
struct InputRows {
  const float* data = nullptr;  // in an AlignedVector, at a multiple of 8
  int stride = 0;               // floats, a multiple of 8; what is beyond the inputs is ignored
  int count = 0;
};

/// Copies the rows with these indices side by side: to[r] = from[which[r]], rows of `stride`
/// floats.
void GatherRows(Kernel kernel, const float* from, int stride, std::span<const std::uint32_t> which,
                float* to);

/// One thread's room for the samples that pass together. What Forward leaves here, Backward reads.
struct NetworkWorkspace {
  static constexpr int kRows = 128;  // samples that pass together, at most

  explicit NetworkWorkspace(const NetworkShape& shape);

  int num_rows = 0;  // of the last Forward
  // Rows are padded to 8 floats.
  std::vector<AlignedVector<float>> activations;  // of h_1 .. h_{L-1} and o: [kRows][units]
  AlignedVector<float> even, odd;                 // d of layers in turn: [kRows][widest]
  AlignedVector<float> gradient;                  // of one layer: [outputs][inputs]
};

/// outputs[r] = the network at sample r; at most kRows rows. Each sum runs over its inputs in
/// order, starting at the bias: the bits of DecideMlp.
void Forward(Kernel kernel, const PackedNetwork& network, const InputRows& rows,
             NetworkWorkspace& workspace, std::span<float> outputs);

/// After Forward on the same rows: gradient[p] = sum over rows r, in their order, of
/// output_gradients[r] d outputs[r] / d parameter p. Overwrites gradient, which is laid out as the
/// parameters.
void Backward(Kernel kernel, const PackedNetwork& network, const InputRows& rows,
              std::span<const float> output_gradients, NetworkWorkspace& workspace,
              std::span<float> gradient);

/// A block of samples for SurrogateGradients; arrays of kRows.
struct SurrogateSamples {
  AlignedVector<float> outputs;      // o of the policy as it is now
  AlignedVector<float> old_outputs;  // of the one that drove
  AlignedVector<float> noise;        // N(0, 1), what was added to it, in its spread
  AlignedVector<float> advantages;
};

/// How proximal policy optimisation wants the outputs to move (Eq. 49): gradients[r] = d loss / d
/// outputs[r] of the clipped loss, for the first num_rows samples; gradients is an AlignedVector of
/// kRows too. spread: of the noise. clip: how far the ratio of probabilities may be from 1 and
/// still move on; infinity for no limit.
void SurrogateGradients(Kernel kernel, const SurrogateSamples& samples, int num_rows, float spread,
                        float clip, std::span<float> gradients);

}  // namespace fedgen
