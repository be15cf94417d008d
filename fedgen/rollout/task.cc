// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/task.h"

namespace fedgen {

std::optional<FieldError> Validate(const EpisodeOptions& o) {
  if (!(o.time_step > 0 && o.time_step <= 10)) {
    return FieldError{"time_step", fmt::format("{}: must be in (0, 10]", o.time_step)};
  }
  if (o.horizon < 1 || o.horizon > 1000000) {
    return FieldError{"horizon", fmt::format("{}: must be in 1..1000000", o.horizon)};
  }
  if (!(o.cost_rate > 0 && o.cost_rate <= 100)) {
    return FieldError{"cost_rate", fmt::format("{}: must be in (0, 100]", o.cost_rate)};
  }
  return std::nullopt;
}

}  // namespace fedgen
