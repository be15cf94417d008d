// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "bench/plain_model.h"

namespace fedgen {

// The peer without a library: one robot after another, every beam against every obstacle, in plain
// loops that the compiler may vectorise (-O3, the processor's baseline, no kernels of ours).
class ScalarPeer {
 public:
  ScalarPeer(const Task& task, const Mlp& mlp);
  /// One episode, from the world's start number `start`.
  Episode Run(const World& world, int start);

 private:
  bool Touches(const World& world, const PlainRobot& robot) const;
  void CastRays(const World& world, const PlainRobot& robot);

  const Task& task_;
  PlainNetwork network_;
  std::vector<float> beam_cos_, beam_sin_;        // [beams] of the beam's angle to the heading
  std::vector<float> direction_x_, direction_y_;  // [beams] of the beam, in the world
  std::vector<float> ranges_;                     // [beams] m
};

}  // namespace fedgen
