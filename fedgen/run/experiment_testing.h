// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/fuse/federation_testing.h"
#include "fedgen/run/experiment.h"

namespace fedgen {

/// All learners of the settings in one process, joined, with secrets that follow from one seed.
inline Federation MakeFederation(const TrainingSettings& settings, Key seed, Kernel kernel,
                                 int num_threads) {
  Host host = MakeHost(settings, SeatsOf(settings, seed), kernel, num_threads);
  Federation federation(std::make_unique<Cloud>(MakeCloud(settings)), std::move(host));
  federation.Join();
  return federation;
}

}  // namespace fedgen
