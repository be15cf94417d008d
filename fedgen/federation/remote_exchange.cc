// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/remote_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/federation/client-inl.h"
#include "fedgen/federation/wire-inl.h"

namespace fedgen {
namespace {

bool MayBeTriedAgain(grpc::StatusCode code) {
  return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::DEADLINE_EXCEEDED ||
         code == grpc::StatusCode::ABORTED || code == grpc::StatusCode::CANCELLED;
}

}  // namespace

struct RemoteExchange::Channels {
  std::shared_ptr<const TlsIdentity> tls;                    // that they were made with
  std::vector<std::shared_ptr<grpc::Channel>> channels;      // [addresses]
  std::vector<std::unique_ptr<v1::Federation::Stub>> stubs;  // [addresses]

  // Waits. A channel that is not connected tries to meanwhile, and ends the wait if it can: nobody
  // else would look after it between two calls.
  void Wait(std::size_t address, std::chrono::nanoseconds longest) {
    grpc::Channel& channel = *channels[address % channels.size()];
    if (channel.GetState(true) == GRPC_CHANNEL_READY) {
      std::this_thread::sleep_for(longest);
    } else {
      channel.WaitForConnected(std::chrono::system_clock::now() + longest);
    }
  }
};

RemoteExchange::RemoteExchange(RemoteExchangeOptions options) : options_(std::move(options)) {
  FEDGEN_CHECK(!options_.addresses.empty(), "no address of {}", options_.run);
}

RemoteExchange::~RemoteExchange() = default;

// Channels by the identity that is in the directory now.
Result<std::shared_ptr<RemoteExchange::Channels>> RemoteExchange::Connect() {
  const std::lock_guard lock(mutex_);
  if (!watch_) {
    watch_ = FEDGEN_TRY(TlsWatch::Open(options_.tls_directory, options_.who, options_.on_trouble));
  }
  std::shared_ptr<const TlsIdentity> tls = watch_->Current();
  if (channels_ && channels_->tls == tls) return channels_;
  channels_ = std::make_shared<Channels>();
  for (const std::string& address : options_.addresses) {
    channels_->channels.push_back(MakeChannel(address, *tls));
    channels_->stubs.push_back(v1::Federation::NewStub(channels_->channels.back()));
  }
  channels_->tls = std::move(tls);
  return channels_;
}

// Twice as long after each try, and up to half of it less, so that a thousand learners do not come
// back at the same moment.
std::chrono::nanoseconds RemoteExchange::PauseAfter(int tries) const {
  const double doubled = static_cast<double>(options_.first_pause.count()) *
                         static_cast<double>(std::uint64_t{1} << std::min(tries, 20));
  const double longest = std::min(doubled, static_cast<double>(options_.longest_pause.count()));
  std::random_device chance;
  const std::chrono::duration<double, std::milli> pause(
      longest * std::uniform_real_distribution(0.5, 1.0)(chance));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(pause);
}

// Calls until the Cloud has answered. `call` is told the stub and the context of a try, and returns
// its status, and whether the Cloud's answer was that it waits for others.
template <typename Call>
Result<void> RemoteExchange::Persist(std::size_t bytes, const Call& call) {
  auto heard = std::chrono::steady_clock::now();  // of the Cloud, last
  std::string told;  // the last trouble: the same again is said once a minute
  std::chrono::steady_clock::time_point told_at{};
  for (int tries = 0;;) {
    const std::shared_ptr<Channels> channels = FEDGEN_TRY(Connect());
    const std::size_t address = address_ % channels->stubs.size();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + options_.deadline);
    ++num_sent_;
    bytes_sent_ += static_cast<std::int64_t>(bytes);
    bool waits = false;
    const grpc::Status status = call(*channels->stubs[address], context, waits);
    if (status.ok()) {
      if (!waits) return {};
      tries = 0;
      heard = std::chrono::steady_clock::now();
      continue;
    }
    const std::string trouble = TroubleOf(options_.addresses[address], status);
    if (!MayBeTriedAgain(status.error_code())) {
      // The certificate may have been renewed, and the old one revoked, while the call was under
      // way.
      if (FEDGEN_TRY(Connect()) != channels) continue;
      return Error{ErrorCode::kMismatch, trouble};
    }
    const auto silence = std::chrono::steady_clock::now() - heard;
    if (options_.give_up.count() > 0 && silence > options_.give_up) {
      return Error{ErrorCode::kIo, trouble};
    }
    const auto now = std::chrono::steady_clock::now();
    if (options_.on_trouble && (trouble != told || now - told_at > std::chrono::minutes(1))) {
      options_.on_trouble(trouble);
      told = trouble;
      told_at = now;
    }
    address_ = address + 1;
    channels->Wait(address + 1, PauseAfter(tries++));
  }
}

Result<Entered> RemoteExchange::Enter(LearnerId learner, const Entry& entry) {
  v1::EnterRequest request;
  request.set_run(entry.run);
  request.set_learner(learner.index());
  request.set_version(entry.version);
  request.set_settings(entry.settings);
  v1::EnterReply reply;
  FEDGEN_TRY(Persist(request.ByteSizeLong(),
                     [&](v1::Federation::Stub& stub, grpc::ClientContext& context,
                         bool& /*waits*/) { return stub.Enter(&context, request, &reply); }));
  options_.run = reply.run();
  return Entered{reply.run(), reply.settings()};
}

Result<StepAnswer> RemoteExchange::Ask(const StepMessage& message) {
  v1::StepRequest request = ToWire(options_.run, message);
  if (std::holds_alternative<RoundMessage>(message)) {
    const std::lock_guard lock(mutex_);
    request.set_holds(held_.hash);
  }
  Result<std::optional<StepAnswer>> answer = std::optional<StepAnswer>();
  FEDGEN_TRY(Persist(request.ByteSizeLong(),
                     [&](v1::Federation::Stub& stub, grpc::ClientContext& context, bool& waits) {
                       v1::StepReply reply;
                       const grpc::Status status = stub.Exchange(&context, request, &reply);
                       if (status.ok()) answer = FromWire(reply);
                       waits = answer.has_value() && !*answer;
                       return status;
                     }));
  std::optional<StepAnswer> got = FEDGEN_TRY(std::move(answer));
  FEDGEN_CHECK(got.has_value(), "{} was not waited for", options_.run);
  return WithTheta(*std::move(got));
}

// An incumbent comes with its theta, or is the one that came last with it.
Result<StepAnswer> RemoteExchange::WithTheta(StepAnswer answer) {
  auto* const round = std::get_if<RoundAnswer>(&answer);
  if (round == nullptr || !round->incumbent) return answer;
  Submission& incumbent = *round->incumbent;
  const std::lock_guard lock(mutex_);
  if (!incumbent.theta.empty()) {
    held_ = {incumbent.hash, incumbent.theta};
  } else if (incumbent.hash == held_.hash) {
    incumbent.theta = held_.theta;
  } else {
    return Error{ErrorCode::kData, "the Cloud leaves out a policy that it has not told"};
  }
  return answer;
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
