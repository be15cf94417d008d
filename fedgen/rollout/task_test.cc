// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace fedgen {
namespace {

TEST(EpisodeOptions, AreThoseOfTheTasksAncestorByDefault) {
  const EpisodeOptions options;
  EXPECT_FALSE(Validate(options));
  EXPECT_EQ(options.time_step, 0.05);
  EXPECT_EQ(options.horizon, 150);
  EXPECT_EQ(options.cost_rate, 0.1);
}

TEST(Validate, NamesWhatIsWrongWithAnEpisode) {
  struct Case {
    std::function<void(EpisodeOptions&)> spoil;
    std::string field;
    std::string problem;
  };
  const std::vector<Case> cases = {
      {[](EpisodeOptions& o) { o.time_step = 0; }, "time_step", "0: must be in (0, 10]"},
      {[](EpisodeOptions& o) { o.time_step = std::nan(""); }, "time_step",
       "nan: must be in (0, 10]"},
      {[](EpisodeOptions& o) { o.time_step = 11; }, "time_step", "11: must be in (0, 10]"},
      {[](EpisodeOptions& o) { o.horizon = 0; }, "horizon", "0: must be in 1..1000000"},
      {[](EpisodeOptions& o) { o.horizon = 1000001; }, "horizon", "1000001: must be in 1..1000000"},
      {[](EpisodeOptions& o) { o.cost_rate = -0.1; }, "cost_rate", "-0.1: must be in (0, 100]"},
      {[](EpisodeOptions& o) { o.cost_rate = 101; }, "cost_rate", "101: must be in (0, 100]"},
  };
  for (const Case& c : cases) {
    EpisodeOptions options;
    c.spoil(options);
    const std::optional<FieldError> error = Validate(options);
    ASSERT_TRUE(error) << c.field << " = " << c.problem;
    EXPECT_EQ(error->field, c.field);
    EXPECT_EQ(error->problem, c.problem);
  }
}

}  // namespace
}  // namespace fedgen
