// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/constants.h"

#include <algorithm>
#include <cmath>

#include "fedgen/base/aligned.h"
#include "fedgen/learn/normal_kernel.h"

namespace fedgen {
namespace {

// Mean of vectors, and the sum of the variances of their entries.
struct Sample {
  std::vector<double> mean;
  double variance = 0;  // of one vector around the mean: E|v - E v|^2
  double mean_square = 0;

  SquaredSignal Signal(std::size_t count) const {
    return EstimateSignal(mean, variance / static_cast<double>(count));
  }
};

Sample SampleOf(const std::vector<std::vector<double>>& vectors) {
  Sample sample;
  const auto count = static_cast<double>(vectors.size());
  sample.mean.assign(vectors.front().size(), 0.0);
  for (const auto& vector : vectors) {
    for (std::size_t i = 0; i < vector.size(); ++i) sample.mean[i] += vector[i] / count;
    const double norm = Norm(vector);
    sample.mean_square += norm * norm / count;
  }
  const double norm = Norm(sample.mean);
  sample.variance = std::max(0.0, (sample.mean_square - norm * norm) * count / (count - 1));
  return sample;
}

}  // namespace

GradientConstants MeasureConstants(Objective& objective, const Search& search, int repeats,
                                   int probes, Key key,
                                   const std::function<void(std::int64_t)>& on_progress) {
  std::int64_t done = 0;
  const auto count = [&] {
    if (on_progress) on_progress(++done);
  };
  GradientConstants constants;
  constants.repeats = repeats;
  constants.probes = probes;
  const auto round_key = [&](int repeat) {
    return key.Fork(Stream::kTraining).Fork(static_cast<std::uint64_t>(repeat));
  };

  std::vector<std::vector<double>> here;
  double direction_squares = 0;
  double y_sum = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Measurement m = objective.Measure(search, round_key(repeat));
    y_sum += m.y;
    direction_squares += m.spread * m.spread;
    here.push_back(std::move(m.z_mu));
    count();
  }
  const auto n = static_cast<std::size_t>(repeats);
  const Sample sample = SampleOf(here);
  constants.y = y_sum / repeats;
  constants.z_norm = std::sqrt(sample.mean_square);
  constants.spread = std::sqrt(sample.variance);
  constants.direction_part = std::sqrt(direction_squares / repeats);
  constants.gradient = sample.Signal(n);

  // The same worlds and directions a step away: the difference has less noise than its parts.
  for (const float sigma : search.sigma) {
    constants.probe_length += static_cast<double>(sigma) * static_cast<double>(sigma);
  }
  constants.probe_length = std::sqrt(constants.probe_length);
  double noise_squares = 0;
  for (int probe = 0; probe < probes; ++probe) {
    AlignedVector<float> direction(PaddedNormals(search.mu.size()));
    DrawNormals(BestKernel(), key.Fork(Stream::kAudit).Fork(static_cast<std::uint64_t>(probe)),
                direction);
    Search moved = search;
    double length_squares = 0;
    for (std::size_t i = 0; i < moved.mu.size(); ++i) {
      const float step = search.sigma[i] * direction[i];
      moved.mu[i] += step;
      length_squares += static_cast<double>(step) * static_cast<double>(step);
    }
    std::vector<std::vector<double>> differences;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      Measurement m = objective.Measure(moved, round_key(repeat));
      for (std::size_t i = 0; i < m.z_mu.size(); ++i) {
        m.z_mu[i] -= here[static_cast<std::size_t>(repeat)][i];
      }
      differences.push_back(std::move(m.z_mu));
      count();
    }
    const Sample change = SampleOf(differences);
    const double signal = std::sqrt(std::max(0.0, change.Signal(n).value) / length_squares);
    constants.smoothness = std::max(constants.smoothness, signal);
    noise_squares += change.variance / static_cast<double>(n) / length_squares;
  }
  constants.smoothness_noise = std::sqrt(noise_squares / std::max(1, probes));
  return constants;
}

}  // namespace fedgen
