// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fedgen/base/random.h"
#include "fedgen/learn/objective.h"

namespace fedgen {

// What parameters cost on one sample of worlds. An estimator of the gradient asks for many
// parameter vectors at once, all on the same worlds, so that they differ by nothing but themselves.

class CostSource {
 public:
  CostSource() = default;
  virtual ~CostSource() = default;
  CostSource(const CostSource&) = delete;
  CostSource& operator=(const CostSource&) = delete;

  struct Costs {
    double y = 1;                 // mean of J of mu (Eq. 17)
    std::vector<double> members;  // [num_members] mean training cost of each (Eq. 23)
    std::int64_t episodes = 0;
    std::int64_t steps = 0;  // of all episodes, if they have any
  };

  /// Writes the parameters of a member. Must be safe to call from several threads.
  using MakeMember = std::function<void(std::int64_t member, std::span<float> parameters)>;

  /// Draws the worlds named by the key and measures mu and every member on them.
  virtual Costs Measure(std::span<const float> mu, std::int64_t num_members,
                        const MakeMember& make_member, Key key) = 0;

  /// The cost J of mu on `worlds` other worlds named by the key.
  virtual Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) = 0;
};

}  // namespace fedgen
