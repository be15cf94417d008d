// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/report/run_pictures.h"

namespace fedgen {

Result<void> RunPlot(const PlotCommand& command) {
  const std::vector<std::string> written =
      FEDGEN_TRY(DrawRun({command.directory, command.learner}));
  for (const std::string& path : written) Print("{}\n", path);
  return {};
}

}  // namespace fedgen
