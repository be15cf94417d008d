// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/doctor.h"

#include <algorithm>

#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"

namespace fedgen {

Result<void> RunDoctor(const DoctorCommand& command) {
  DoctorOptions options;
  options.tls_directory = command.tls;
  if (command.id) options.who = LearnerId(*command.id - 1);
  // Who listens is the Cloud.
  if (!command.id && !command.listen.empty()) options.who = LearnerId::Cloud();
  options.clouds = command.clouds;
  options.listen = command.listen;
  options.store = command.store;
  options.files = command.files;
  if (command.tls.empty() && !command.clouds.empty()) {
    return Error{ErrorCode::kUsage, "--cloud: needs --tls, a Cloud is reached with a certificate"};
  }
  const std::vector<Finding> findings = Diagnose(options);
  if (findings.empty()) {
    return Error{ErrorCode::kUsage,
                 "nothing to look at: give --tls, --cloud, --listen, --store or --file"};
  }
  Print("{}", FindingsText(findings));
  const auto num_bad = std::ranges::count_if(
      findings, [](const Finding& finding) { return finding.health == Health::kBad; });
  if (num_bad == 0) return {};
  return Error{ErrorCode::kMissed,
               fmt::format("{} of {} {} missed", num_bad,
                           Counted(static_cast<std::int64_t>(findings.size()), "check"),
                           num_bad == 1 ? "was" : "were")};
}

}  // namespace fedgen
