// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/remote_exchange.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/federation/wire-inl.h"
#include "fedgen/federation/wire.grpc.pb.h"

namespace fedgen {
namespace {

bool MayBeTriedAgain(grpc::StatusCode code) {
  return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::DEADLINE_EXCEEDED ||
         code == grpc::StatusCode::ABORTED || code == grpc::StatusCode::CANCELLED;
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // A learner may compute for minutes; a connection that died meanwhile is noticed within seconds.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetMaxReceiveMessageSize(-1);  // the finals of all learners
  return arguments;
}

}  // namespace

struct RemoteExchange::Channels {
  std::vector<std::unique_ptr<v1::Federation::Stub>> stubs;  // [addresses]
};

RemoteExchange::RemoteExchange(RemoteExchangeOptions options)
    : options_(std::move(options)), channels_(std::make_unique<Channels>()) {
  FEDGEN_CHECK(!options_.addresses.empty(), "no address of {}", options_.run);
  const grpc::SslCredentialsOptions tls{options_.tls.authority, options_.tls.key,
                                        options_.tls.certificate};
  const auto credentials = grpc::SslCredentials(tls);
  for (const std::string& address : options_.addresses) {
    channels_->stubs.push_back(
        v1::Federation::NewStub(grpc::CreateCustomChannel(address, credentials, Arguments())));
  }
}

RemoteExchange::~RemoteExchange() = default;

// Twice as long after each try, and up to half of it less, so that a thousand learners do not come
// back at the same moment.
void RemoteExchange::Pause(int tries) const {
  const double doubled = static_cast<double>(options_.first_pause.count()) *
                         static_cast<double>(std::uint64_t{1} << std::min(tries, 20));
  const double longest = std::min(doubled, static_cast<double>(options_.longest_pause.count()));
  std::random_device chance;
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(
      longest * std::uniform_real_distribution(0.5, 1.0)(chance)));
}

Result<StepAnswer> RemoteExchange::Ask(const StepMessage& message) {
  const v1::StepRequest request = ToWire(options_.run, message);
  auto heard = std::chrono::steady_clock::now();  // of the Cloud, last
  for (int tries = 0;;) {
    const std::size_t address = address_ % channels_->stubs.size();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + options_.deadline);
    v1::StepReply reply;
    ++num_sent_;
    bytes_sent_ += static_cast<std::int64_t>(request.ByteSizeLong());
    const grpc::Status status = channels_->stubs[address]->Exchange(&context, request, &reply);
    if (status.ok()) {
      std::optional<StepAnswer> answer = FEDGEN_TRY(FromWire(reply));
      if (answer) return *std::move(answer);
      tries = 0;  // it waits for others, and said so
      heard = std::chrono::steady_clock::now();
      continue;
    }
    if (!MayBeTriedAgain(status.error_code())) {
      return Error{ErrorCode::kMismatch,
                   fmt::format("{}: {}", options_.addresses[address], status.error_message())};
    }
    const std::string trouble =
        fmt::format("{}: {}", options_.addresses[address], status.error_message());
    const auto silence = std::chrono::steady_clock::now() - heard;
    if (options_.give_up.count() > 0 && silence > options_.give_up) {
      return Error{ErrorCode::kIo, trouble};
    }
    if (options_.on_trouble) options_.on_trouble(trouble);
    address_ = address + 1;
    Pause(tries++);
  }
}

// Every learner of this host at the same time: nobody is answered before all are heard.
template <typename Answer, typename Message>
Result<std::vector<Answer>> RemoteExchange::AskAll(std::span<const Message> messages) {
  std::vector<Result<StepAnswer>> answers(messages.size(), Error{ErrorCode::kIo, "not asked"});
  std::vector<std::thread> others;
  for (std::size_t at = 1; at < messages.size(); ++at) {
    others.emplace_back([&, at] { answers[at] = Ask(messages[at]); });
  }
  answers.front() = Ask(messages.front());
  for (std::thread& other : others) other.join();
  std::vector<Answer> wanted;
  for (Result<StepAnswer>& answer : answers) {
    StepAnswer got = FEDGEN_TRY(std::move(answer));
    Answer* right = std::get_if<Answer>(&got);
    if (right == nullptr) {
      return Error{ErrorCode::kData, "the Cloud answers another question than was asked"};
    }
    wanted.push_back(std::move(*right));
  }
  return wanted;
}

Result<std::vector<Welcome>> RemoteExchange::Join(std::span<const JoinMessage> messages) {
  return AskAll<Welcome>(messages);
}

Result<RoundAnswer> RemoteExchange::Submit(std::span<const RoundMessage> messages) {
  return std::move(FEDGEN_TRY(AskAll<RoundAnswer>(messages)).front());
}

Result<Ending> RemoteExchange::Close(std::span<const CloseMessage> messages) {
  return FEDGEN_TRY(AskAll<Ending>(messages)).front();
}

Result<Finalists> RemoteExchange::Finish(std::span<const FinalMessage> messages) {
  return std::move(FEDGEN_TRY(AskAll<Finalists>(messages)).front());
}

Result<void> RemoteExchange::Leave(LearnerId learner) {
  const LeaveMessage message{learner};
  FEDGEN_TRY(AskAll<Farewell>(std::span(&message, 1)));
  return {};
}

Result<RaceAnswer> RemoteExchange::Race(std::span<const RaceMessage> messages) {
  return std::move(FEDGEN_TRY(AskAll<RaceAnswer>(messages)).front());
}

}  // namespace fedgen
