// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fedgen/base/result.h"

namespace fedgen {

// What a Cloud sustains.
//
//   load      requests per second of the Cloud with its durable store, and of a bare gRPC echo:
//             same messages, client, requests under way, TLS and threads, in turns; and the Cloud's
//             memory over all these submissions
//   learners  very many learners with certificates and connections of their own in one run
//   state     the Cloud's state machine alone, with up to a million simulated learners: memory and
//             time for each; and with its store, up to a hundred thousand

struct CloudBenchOptions {
  bool quick = false;
  int runs = 1;              // of the load: learners of different runs do not wait for each other
  std::string part = "all";  // or one of the above
  std::string directory = "/tmp";  // where stores are made: on the disk that shall be measured
};

/// Prints while it goes on. An error if something was not answered; missing an aim is none.
Result<void> RunCloudBench(const CloudBenchOptions& options);

/// The part without a network (cloud_state_bench.cc).
Result<void> RunCloudStateBench(bool quick, const std::string& directory);

}  // namespace fedgen
