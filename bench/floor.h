// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fedgen {

// The floor under the cost of a step: the multiplications of the policy alone, done by Eigen for
// many samples at once. No bias, no activation, no world. A step that costs little more than this
// has little left to gain.
//
// There are several ways to ask Eigen for the same product: samples as columns of a matrix stored
// by columns or by rows, sizes known to the compiler or not, and any size of batch. Which one is
// fastest depends on the shape and the processor, so Floor tries all when it is made and keeps the
// best. It needs a processor with AVX2 and FMA.
class Floor {
 public:
  /// One way to multiply.
  struct Method {
    std::string name;
    int batch = 0;                   // samples
    std::function<void()> multiply;  // passes one batch through all layers
  };

  /// net: one of kBenchNets. Takes about half a second.
  explicit Floor(std::string_view net);

  /// The fastest of other ways.
  explicit Floor(const std::vector<Method>& methods);

  /// Multiplies for about `seconds`. Returns samples per second.
  double Run(double seconds) const;

  /// What was chosen, e.g. "rows, fixed sizes, batch 192".
  const std::string& choice() const { return best_.name; }

 private:
  Method best_;
};

}  // namespace fedgen
