// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/federation/cloud_watcher.h"

namespace fedgen {

// gRPC writes its errors to stderr, such as a handshake that failed, which anybody who reaches the
// port can cause. Here they are kept from it: they go to a watcher (OnTransport), or nowhere while
// there is none, for what concerns a learner comes as the status of its call. With GRPC_VERBOSITY
// in the environment, gRPC keeps writing itself.

/// From now on.
void KeepGrpcFromStderr();

/// The watcher of the process.
void SendGrpcErrorsTo(CloudWatcher& watcher);

/// Ends that, if it is still this one; waits for calls to be over.
void StopSendingGrpcErrorsTo(const CloudWatcher& watcher);

}  // namespace fedgen
