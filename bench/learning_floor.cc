// SPDX-License-Identifier: Apache-2.0
#include "bench/learning_floor.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>

namespace fedgen {
namespace {

/// One sample per column, sizes unknown to the compiler. kOrder is how all matrices are stored: by
/// rows, consecutive samples are neighbours in memory.
template <int kOrder>
Floor::Method DynamicMethod(const std::vector<int>& sizes, int batch) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, kOrder>;
  struct Layers {
    std::vector<Matrix> weights, gradients, values, deltas;
  };
  auto layers = std::make_shared<Layers>();
  for (const int size : sizes) {
    layers->values.push_back(Matrix::Random(size, batch));
    layers->deltas.push_back(Matrix::Random(size, batch));
  }
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    layers->weights.push_back(Matrix::Random(sizes[l + 1], sizes[l]));
    layers->gradients.push_back(layers->weights.back());
  }
  return {fmt::format("{}, dynamic sizes, batch {}", kOrder == Eigen::RowMajor ? "rows" : "columns",
                      batch),
          batch, [layers] {
            auto& [weights, gradients, values, deltas] = *layers;
            for (std::size_t l = 0; l < weights.size(); ++l) {
              values[l + 1].noalias() = weights[l] * values[l];
            }
            for (std::size_t l = weights.size(); l-- > 0;) {
              gradients[l].noalias() = deltas[l + 1] * values[l].transpose();
              if (l > 0) deltas[l].noalias() = weights[l].transpose() * deltas[l + 1];
            }
          }};
}

/// One sample per row, with the sizes of the layers known to the compiler. kOrder is how values and
/// deltas are stored; a column of one is both.
template <int kOrder, int... kSizes>
Floor::Method FixedMethod(int batch) {
  return [batch]<std::size_t... kLayer>(std::index_sequence<kLayer...>) -> Floor::Method {
    static constexpr std::array<int, sizeof...(kSizes)> kSize = {kSizes...};
    struct Layers {
      std::tuple<Eigen::Matrix<float, kSize[kLayer], kSize[kLayer + 1]>...> weights, gradients;
      std::tuple<Eigen::Matrix<float, Eigen::Dynamic, kSizes, kSizes == 1 ? 0 : kOrder>...> values,
          deltas;
    };
    auto layers = std::make_shared<Layers>();
    const auto fill = [batch](auto&... all) { (all.setRandom(batch, all.cols()), ...); };
    std::apply(fill, layers->values);
    std::apply(fill, layers->deltas);
    (std::get<kLayer>(layers->weights).setRandom(), ...);
    const auto backward = []<std::size_t kFromTop>(Layers& all) {
      constexpr std::size_t l = sizeof...(kLayer) - 1 - kFromTop;
      const auto& above = std::get<l + 1>(all.deltas);
      std::get<l>(all.gradients).noalias() = std::get<l>(all.values).transpose() * above;
      if constexpr (l > 0) {
        std::get<l>(all.deltas).noalias() = above * std::get<l>(all.weights).transpose();
      }
    };
    return {fmt::format("{}, fixed sizes, batch {}", kOrder == Eigen::RowMajor ? "columns" : "rows",
                        batch),
            batch, [layers, backward] {
              ((std::get<kLayer + 1>(layers->values).noalias() =
                    std::get<kLayer>(layers->values) * std::get<kLayer>(layers->weights)),
               ...);
              (backward.template operator()<kLayer>(*layers), ...);
            }};
  }(std::make_index_sequence<sizeof...(kSizes) - 1>());
}

template <int kOrder>
Floor::Method FixedMethod(std::string_view net, int batch) {
  if (net == kLearningNets[0]) return FixedMethod<kOrder, 24, 20, 20, 20, 1>(batch);
  if (net == kLearningNets[1]) return FixedMethod<kOrder, 28, 32, 32, 1>(batch);
  return FixedMethod<kOrder, 66, 64, 64, 1>(batch);
}

}  // namespace

std::vector<int> SizesOf(std::string_view net) {
  std::vector<int> sizes = {0};
  for (const char c : net) {
    if (c == '-') {
      sizes.push_back(0);
    } else {
      sizes.back() = 10 * sizes.back() + (c - '0');
    }
  }
  return sizes;
}

Floor MakeLearningFloor(std::string_view net) {
  const std::vector<int> sizes = SizesOf(net);
  std::vector<Floor::Method> methods;
  for (const int batch : {64, 96, 128, 192, 256, 384, 512, 768, 1024}) {
    methods.push_back(DynamicMethod<Eigen::RowMajor>(sizes, batch));
    methods.push_back(DynamicMethod<Eigen::ColMajor>(sizes, batch));
    methods.push_back(FixedMethod<Eigen::RowMajor>(net, batch));
    methods.push_back(FixedMethod<Eigen::ColMajor>(net, batch));
  }
  return Floor(methods);
}

}  // namespace fedgen
