// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/lidar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace fedgen {
namespace {

double AngleDegrees(const Lidar& lidar, int beam) {
  const auto at = static_cast<std::size_t>(beam);
  return std::atan2(static_cast<double>(lidar.sin[at]), static_cast<double>(lidar.cos[at])) * 180 /
         std::numbers::pi;
}

TEST(Lidar, LooksToOneSideAsThePaperIsPrinted) {
  const Lidar lidar(kOneSidedFan);
  ASSERT_EQ(lidar.num_beams, 20);
  EXPECT_EQ(lidar.range, 5.0F);
  for (int phi = 1; phi <= 20; ++phi) {
    EXPECT_NEAR(AngleDegrees(lidar, phi - 1), -60 + 3 * (phi - 1), 1e-4) << "beam " << phi;
  }
}

TEST(Lidar, LooksToBothSidesAsTheAncestorDoes) {
  const Lidar lidar(kSymmetricFan);
  ASSERT_EQ(lidar.num_beams, 20);
  for (int beam = 0; beam < 20; ++beam) {
    EXPECT_NEAR(AngleDegrees(lidar, beam), -60 + 120.0 / 19 * beam, 1e-4) << "beam " << beam;
    EXPECT_NEAR(AngleDegrees(lidar, beam), -AngleDegrees(lidar, 19 - beam), 1e-4);
  }
}

TEST(Lidar, HasBeamsAtFirstPlusMultiplesOfSpacing) {
  for (const LidarOptions& options : {kOneSidedFan, kSymmetricFan, LidarOptions{7, 3, -180, 180},
                                      LidarOptions{1000, 8, 10, 95}}) {
    const Lidar lidar(options);
    for (int beam = 0; beam < options.beams; ++beam) {
      const double angle = lidar.first + static_cast<double>(lidar.spacing) * beam;
      const auto at = static_cast<std::size_t>(beam);
      ASSERT_NEAR(lidar.cos[at], std::cos(angle), 1e-4);
      ASSERT_NEAR(lidar.sin[at], std::sin(angle), 1e-4);
    }
  }
}

TEST(Lidar, OfOneBeamLooksWhereTheFanBegins) {
  const Lidar lidar({1, 5, 30, 40});
  EXPECT_NEAR(AngleDegrees(lidar, 0), 30, 1e-4);
  EXPECT_GT(lidar.spacing, 0.0F);
}

TEST(Lidar, PadsARowToGroupsOfEightWithTheLastBeam) {
  for (const int beams : {1, 7, 8, 9, 20, 64}) {
    const Lidar lidar({beams, 5, -60, 60});
    ASSERT_EQ(lidar.beam_stride, (beams + 7) / 8 * 8);
    ASSERT_EQ(lidar.cos.size(), static_cast<std::size_t>(lidar.beam_stride));
    for (auto at = static_cast<std::size_t>(beams); at < lidar.cos.size(); ++at) {
      EXPECT_EQ(lidar.cos[at], lidar.cos[static_cast<std::size_t>(beams - 1)]);
      EXPECT_EQ(lidar.sin[at], lidar.sin[static_cast<std::size_t>(beams - 1)]);
    }
  }
}

TEST(Validate, AcceptsEveryFanALidarCanHave) {
  for (const LidarOptions& options : {kOneSidedFan, kSymmetricFan, LidarOptions{1, 0.1, 0, 0},
                                      LidarOptions{1024, 1e4, -180, 180}}) {
    EXPECT_FALSE(Validate(options));
  }
}

TEST(Validate, NamesWhatIsWrongWithALidar) {
  struct Case {
    LidarOptions options;
    std::string field;
    std::string problem;
  };
  const double nan = std::nan("");
  for (const Case& c : {
           Case{{0, 5, -60, 60}, "beams", "0: must be in 1..1024"},
           Case{{1025, 5, -60, 60}, "beams", "1025: must be in 1..1024"},
           Case{{20, 0, -60, 60}, "range", "0: must be in [0.001, 1e4]"},
           Case{{20, 1e-60, -60, 60}, "range", "1e-60: must be in [0.001, 1e4]"},
           Case{{20, nan, -60, 60}, "range", "nan: must be in [0.001, 1e4]"},
           Case{{20, 20000, -60, 60}, "range", "20000: must be in [0.001, 1e4]"},
           Case{{20, 5, -181, 60}, "from_degrees", "-181: must be in [-180, 180]"},
           Case{{20, 5, 60, -60}, "to_degrees", "-60: must be in [from_degrees, 180]"},
           Case{{20, 5, -60, 181}, "to_degrees", "181: must be in [-180, 180]"},
           Case{{20, 5, -60, nan}, "to_degrees", "nan: must be in [-180, 180]"},
           Case{{2, 5, 30, 30}, "to_degrees", "30: 2 beams need a fan of some width"},
       }) {
    const std::optional<FieldError> error = Validate(c.options);
    ASSERT_TRUE(error) << c.field << " = " << c.problem;
    EXPECT_EQ(error->field, c.field);
    EXPECT_EQ(error->problem, c.problem);
  }
}

}  // namespace
}  // namespace fedgen
