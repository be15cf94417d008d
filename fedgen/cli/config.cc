// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/run/config_explain.h"

namespace fedgen {

Result<void> RunConfigExplain(const ConfigExplainCommand& command) {
  if (command.markdown && !command.key.empty()) {
    return Error{ErrorCode::kUsage, "--markdown: explains all options, without a KEY"};
  }
  if (command.markdown) {
    Print("{}", OptionsMarkdown());
  } else if (command.key.empty()) {
    Print("{}", ExplainOptions());
  } else {
    Print("{}", FEDGEN_TRY(ExplainOption(command.key)));
  }
  return {};
}

}  // namespace fedgen
