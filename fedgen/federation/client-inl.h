// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "fedgen/federation/grpc_log.h"
#include "fedgen/federation/wire.grpc.pb.h"
#include "fedgen/identity/tls.h"

namespace fedgen {

// What the clients of a Cloud share. For the files of this room that talk gRPC.

/// A connection of its own, made when it is first used.
inline std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                                  const TlsIdentity& tls) {
  KeepGrpcFromStderr();
  grpc::ChannelArguments arguments;
  // A learner may compute for minutes; a connection that died meanwhile is noticed within seconds.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetMaxReceiveMessageSize(-1);  // the finals of all learners
  // A connection made with another certificate is another connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(
      address, grpc::SslCredentials({tls.authority, tls.key, tls.certificate}), arguments);
}

/// What a status says, and what may be behind it: who is refused by TLS is not told by the other
/// end why, and sees a connection that ends.
inline std::string TroubleOf(const std::string& address, const grpc::Status& status) {
  std::string trouble = fmt::format("{}: {}", address, status.error_message());
  const auto speaks_of = [&](const char* word) {
    return status.error_message().find(word) != std::string::npos;
  };
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      (speaks_of("handshake") || speaks_of("SSL") || speaks_of("Peer name") ||
       speaks_of("Socket closed") || speaks_of("Connection reset"))) {
    trouble +=
        "; the certificate may have been refused, or the address be another's (fedgen doctor)";
  }
  return trouble;
}

}  // namespace fedgen
