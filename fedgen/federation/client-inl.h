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

/// What a status says, in words that help: what the Cloud says is its own; where it was not
/// reached, gRPC tells of its machinery. Who is refused by TLS is not told by the other end why,
/// and sees a connection that ends.
inline std::string TroubleOf(const std::string& address, const grpc::Status& status) {
  const std::string& said = status.error_message();
  const auto plain = [&]() -> std::string {
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return "no answer in time";
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return said;
    const auto speaks_of = [&](const char* word) { return said.find(word) != std::string::npos; };
    if (speaks_of("Connection refused")) return "nobody listens there";
    if (speaks_of("DNS resolution") || speaks_of("Domain name not found")) return "no such host";
    if (speaks_of("No route to host") || speaks_of("Network is unreachable")) {
      return "cannot be reached from here";
    }
    if (speaks_of("Peer name") || speaks_of("Hostname Verification")) {
      return "its certificate is of another host: the address may be another's (fedgen doctor)";
    }
    if (speaks_of("CERTIFICATE_VERIFY_FAILED")) {
      return "its certificate is not of this federation, or has expired (fedgen doctor)";
    }
    if (speaks_of("handshake") || speaks_of("SSL") || speaks_of("Socket closed") ||
        speaks_of("Connection reset") || speaks_of("GOAWAY")) {
      return "the connection ended: the Cloud stopped, the certificate was refused, or the address "
             "is another's (fedgen doctor)";
    }
    return said;
  };
  return fmt::format("{}: {}", address, plain());
}

}  // namespace fedgen
