// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/federation/status.h"
#include "fedgen/federation/steps.h"
#include "fedgen/federation/wire.pb.h"

namespace fedgen {

// Messages and answers as the wire has them (wire.proto). For the files of this room that talk
// gRPC.
//
// Reading trusts nothing: whatever the bytes, it ends in a message whose numbers are finite and
// whose names are in range, or in one line that says what is wrong. Whether the message makes sense
// in its run is for the Cloud to say.

v1::StepRequest ToWire(const std::string& run, const StepMessage& message);
Result<StepMessage> FromWire(const v1::StepRequest& request);

v1::StepReply ToWire(const std::optional<StepAnswer>& answer);
/// Nothing if the Cloud is still waiting for others.
Result<std::optional<StepAnswer>> FromWire(const v1::StepReply& reply);

v1::StatusReply ToWire(const CloudStatus& status);
CloudStatus FromWire(const v1::StatusReply& reply);

}  // namespace fedgen
