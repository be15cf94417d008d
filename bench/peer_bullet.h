// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "bench/plain_model.h"

namespace fedgen {

// The peer on a physics engine: the same episodes on Bullet's collision world, as its ordinary user
// would write them. The engine answers what a robot senses and touches (20 rayTest and one
// contactTest per step); motion, network and disturbance are plain_model's. Building the collision
// world of an episode is part of the run, as it is for anyone who drives through many worlds.
class BulletPeer {
 public:
  BulletPeer(const Task& task, const Mlp& mlp);
  ~BulletPeer();
  BulletPeer(const BulletPeer&) = delete;
  BulletPeer& operator=(const BulletPeer&) = delete;

  /// One episode, from the world's start number `start`.
  Episode Run(const World& world, int start);

 private:
  struct Engine;
  const Task& task_;
  PlainNetwork network_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace fedgen
