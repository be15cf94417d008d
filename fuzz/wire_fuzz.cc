// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fedgen/base/check.h"
#include "fedgen/federation/wire-inl.h"
#include "fedgen/fuse/checkpoint.h"
#include "fuzz/one_line.h"

// Whatever peers send, a Cloud of two learners stays a Cloud: each request is heard or refused in
// one line, what is refused changes nothing, and what is heard comes back from wire and disk as it
// was. The input is a list of requests, each behind its length in two bytes; an empty one leaves
// out the first learner that is silent.

namespace fedgen {
namespace {

std::string StateOf(const Cloud& cloud) {
  return CheckpointToBytes(CloudCheckpoint{"", cloud.state()});
}

void Receive(std::string_view bytes, Cloud& cloud) {
  v1::StepRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const Result<StepMessage> message = FromWire(request);
  if (!message) {
    FEDGEN_CHECK(IsOneLine(message.error().message), "{}", message.error().message);
    return;
  }
  const Result<StepMessage> again = FromWire(ToWire(request.run(), *message));
  FEDGEN_CHECK(again && StepToBytes(*again) == StepToBytes(*message), "by the wire");
  const Result<StepMessage> kept = StepFromBytes(StepToBytes(*message));
  FEDGEN_CHECK(kept && StepToBytes(*kept) == StepToBytes(*message), "by the disk");

  const std::string before = StateOf(cloud);
  const Result<bool> heard = Hear(*message, cloud);
  if (!heard) FEDGEN_CHECK(IsOneLine(heard.error().message), "{}", heard.error().message);
  if (!heard || !*heard)
    FEDGEN_CHECK(StateOf(cloud) == before, "what is not heard changes nothing");
  const std::string after = StateOf(cloud);
  FEDGEN_CHECK(CloudFromBytes(after, "state").has_value(), "a state that cannot be kept");
}

void LeaveOutOne(Cloud& cloud) {
  const std::vector<LearnerId> silent = cloud.Silent();
  if (silent.empty()) return;
  const ControlMessage message{ControlMessage::Kind::kLeftOut, silent.front()};
  FEDGEN_CHECK(cloud.Receive(message).has_value(), "who is silent can be left out");
}

void ReceiveAll(std::string_view input, const FederationOptions& options) {
  Cloud cloud(options, std::vector{LearnerId(0), LearnerId(1)});
  while (input.size() >= 2) {
    const std::size_t length = static_cast<std::uint8_t>(input[0]) +
                               (std::size_t{static_cast<std::uint8_t>(input[1])} << 8U);
    input.remove_prefix(2);
    if (length == 0) LeaveOutOne(cloud);
    Receive(input.substr(0, length), cloud);
    input.remove_prefix(std::min(length, input.size()));
  }
}

}  // namespace
}  // namespace fedgen

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  fedgen::ReceiveAll(input, {.rounds = 3});
  fedgen::ReceiveAll(input, {.rounds = 3, .patience = 1, .open = true});
  fedgen::ReceiveAll(input, {.rounds = 3, .patience = 1, .async = true, .open = true});
  return 0;
}
