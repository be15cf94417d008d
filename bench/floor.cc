// SPDX-License-Identifier: Apache-2.0
#include "bench/floor.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <array>
#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/bench_task.h"
#include "bench/stopwatch.h"

namespace fedgen {
namespace {

double SamplesPerSecond(const Floor::Method& method, double seconds) {
  constexpr int kRepeats = 16;  // between looks at the clock
  const Stopwatch stopwatch(Stopwatch::Kind::kThread);
  double elapsed = 0;
  double samples = 0;
  while (elapsed < seconds) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) method.multiply();
    samples += kRepeats * method.batch;
    elapsed = stopwatch.Seconds();
  }
  return samples / elapsed;
}

/// Layers as W X, one sample per column, sizes unknown to the compiler. kOrder is how all matrices
/// are stored: by rows, consecutive samples are neighbours in memory.
template <int kOrder>
Floor::Method DynamicMethod(const std::vector<int>& sizes, int batch) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, kOrder>;
  struct Layers {
    std::vector<Matrix> weights, values;
  };
  auto layers = std::make_shared<Layers>();
  for (const int size : sizes) layers->values.push_back(Matrix::Random(size, batch));
  for (std::size_t layer = 0; layer + 1 < sizes.size(); ++layer) {
    layers->weights.push_back(Matrix::Random(sizes[layer + 1], sizes[layer]));
  }
  return {fmt::format("{}, dynamic sizes, batch {}", kOrder == Eigen::RowMajor ? "rows" : "columns",
                      batch),
          batch, [layers] {
            for (std::size_t layer = 0; layer < layers->weights.size(); ++layer) {
              layers->values[layer + 1].noalias() = layers->weights[layer] * layers->values[layer];
            }
          }};
}

/// The same by rows, with the sizes of the layers known to the compiler.
template <int... kSizes>
Floor::Method FixedMethod(int batch) {
  return [batch]<std::size_t... kLayer>(std::index_sequence<kLayer...>) -> Floor::Method {
    static constexpr std::array<int, sizeof...(kSizes)> kSize = {kSizes...};
    struct Layers {
      // Transposed and stored by columns, which is the same as W and X stored by rows.
      std::tuple<Eigen::Matrix<float, kSize[kLayer], kSize[kLayer + 1]>...> weights;
      std::tuple<Eigen::Matrix<float, Eigen::Dynamic, kSizes>...> values;
    };
    auto layers = std::make_shared<Layers>();
    (std::get<kLayer>(layers->weights).setRandom(), ...);
    std::apply([batch](auto&... values) { (values.setRandom(batch, values.cols()), ...); },
               layers->values);
    return {fmt::format("rows, fixed sizes, batch {}", batch), batch, [layers] {
              ((std::get<kLayer + 1>(layers->values).noalias() =
                    std::get<kLayer>(layers->values) * std::get<kLayer>(layers->weights)),
               ...);
            }};
  }(std::make_index_sequence<sizeof...(kSizes) - 1>());
}

std::vector<Floor::Method> AllMethods(std::string_view net) {
  const bool is_first = net == kBenchNets[0];
  const std::vector<int> sizes =
      is_first ? std::vector<int>{24, 20, 20, 20, 1} : std::vector<int>{20, 20, 1};
  std::vector<Floor::Method> methods;
  for (const int batch : {64, 96, 128, 192, 256, 384, 512, 768, 1024}) {
    methods.push_back(DynamicMethod<Eigen::RowMajor>(sizes, batch));
    methods.push_back(DynamicMethod<Eigen::ColMajor>(sizes, batch));
    methods.push_back(is_first ? FixedMethod<24, 20, 20, 20, 1>(batch)
                               : FixedMethod<20, 20, 1>(batch));
  }
  return methods;
}

}  // namespace

Floor::Floor(std::string_view net) : Floor(AllMethods(net)) {}

Floor::Floor(const std::vector<Method>& methods) {
  // Best of several short tries each, so that a disturbed try does not decide.
  double best_speed = 0;
  for (int round = 0; round < 5; ++round) {
    for (const Method& method : methods) {
      const double speed = SamplesPerSecond(method, 0.003);
      if (speed > best_speed) {
        best_speed = speed;
        best_ = method;
      }
    }
  }
}

double Floor::Run(double seconds) const { return SamplesPerSecond(best_, seconds); }

}  // namespace fedgen
