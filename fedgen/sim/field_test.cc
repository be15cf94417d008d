// SPDX-License-Identifier: Apache-2.0

// The disturbances of Eq. 5, as Disturb() gives them: statistics of the Von Karman field over
// worlds, and the uniform noise number by number.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <span>
#include <vector>

#include "fedgen/sim/move_kernel.h"
#include "fedgen/world/distribution.h"

namespace fedgen {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

DisturbanceOptions Field(double length_scale, double shortest_wavelength, int modes) {
  DisturbanceOptions options;
  options.kind = Disturbance::Kind::kVonKarman;
  options.intensity = 0.7;
  options.length_scale = length_scale;
  options.shortest_wavelength = shortest_wavelength;
  options.modes = modes;
  return options;
}

World MakeWorld(const DisturbanceOptions& options, Key key) {
  WorldDistribution distribution;
  distribution.disturbance = options;
  World world;
  DrawWorld(distribution, 0, key, BestKernel(), world);
  return world;
}

struct Point {
  double x, y;
};

// Reads a field at points: robots stand there, and what pushes them in x is d.
class Probe {
 public:
  explicit Probe(Kernel kernel = BestKernel())
      : kernel_(kernel), batch_(kSlots, Lidar({1, 5, 0, 0})) {}

  std::vector<double> Read(const World& world, std::span<const Point> points) {
    std::vector<double> d;
    for (std::size_t first = 0; first < points.size(); first += kSlots) {
      const int count = static_cast<int>(std::min<std::size_t>(kSlots, points.size() - first));
      for (int slot = 0; slot < count; ++slot) {
        const Point& point = points[first + static_cast<std::size_t>(slot)];
        batch_.Place(slot, world, {static_cast<float>(point.x), static_cast<float>(point.y), 0},
                     Key(0));
      }
      Disturb(kernel_, count, batch_);
      d.insert(d.end(), batch_.push_x.begin(), batch_.push_x.begin() + count);
    }
    return d;
  }

 private:
  static constexpr int kSlots = 64;
  Kernel kernel_;
  Batch batch_;
};

struct Estimate {
  double mean = 0;
  double error = 0;  // standard error of the mean
};

Estimate MeanOf(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0;
  double square = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) square += (value - mean) * (value - mean);
  return {mean, std::sqrt(square / n / (n - 1))};
}

// cos 2 pi (k . p + phase), in double.
double NaiveField(const Disturbance& field, const Point& p) {
  double sum = 0;
  for (std::size_t mode = 0; mode < field.kx.size(); ++mode) {
    sum += std::cos(kTwoPi * (field.kx[mode] * p.x + field.ky[mode] * p.y + field.phase[mode]));
  }
  return field.amplitude * sum;
}

// Rounding: k . p is below 4 * 14 = 56 cycles, whose half ulp is 2e-6 cycles or 1.2e-5 rad, once
// for each of two additions; 32 waves of amplitude 0.7 sqrt(2 / 32) = 0.175 add up to at
// most 1.4e-4.
TEST(VonKarmanField, IsTheSumOfItsWaves) {
  Probe probe;
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    const World world = MakeWorld(Field(1, 0.25, 32), Key(1).Fork(trial));
    std::vector<Point> points;
    for (std::uint64_t at = 0; at < 20; ++at) {
      const RandomBlock words = Key(2).Fork(trial).Block(at);
      points.push_back({20.0 * UnitFloat(words[0]) - 10, 20.0 * UnitFloat(words[1]) - 10});
    }
    const std::vector<double> d = probe.Read(world, points);
    for (std::size_t at = 0; at < points.size(); ++at) {
      // The probe rounds the point to float first.
      const Point rounded{static_cast<float>(points[at].x), static_cast<float>(points[at].y)};
      ASSERT_NEAR(d[at], NaiveField(world.disturbance, rounded), 1.5e-4);
    }
  }
}

TEST(VonKarmanField, GivesTheSameBitsInBothKernels) {
  Probe scalar(Kernel::kScalar);
  Probe simd(BestKernel());
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    const int modes = 8 * (1 + static_cast<int>(trial % 9));
    const World world =
        MakeWorld(Field(1 + 0.1 * static_cast<double>(trial), 0.1, modes), Key(3).Fork(trial));
    std::vector<Point> points;
    for (std::uint64_t at = 0; at < 30; ++at) {
      const RandomBlock words = Key(4).Fork(trial).Block(at);
      points.push_back({20.0 * UnitFloat(words[0]) - 10, 1e3 * UnitFloat(words[1]) - 500});
    }
    ASSERT_EQ(scalar.Read(world, points), simd.Read(world, points));
  }
}

// One point in each of n worlds. A sum of M cosines of random phase has the fourth moment
// sigma^4 (3 - 1.5 / M), so d^2 has the standard deviation sigma^2 sqrt(2 - 1.5 / M).
TEST(VonKarmanField, HasMeanZeroAndVarianceIntensitySquared) {
  constexpr int kWorlds = 20000;
  for (const int modes : {8, 32}) {
    Probe probe;
    double sum = 0;
    double sum2 = 0;
    for (std::uint64_t w = 0; w < kWorlds; ++w) {
      const World world = MakeWorld(Field(1, 0.25, modes), Key(5).Fork(w));
      const Point point{0.001 * static_cast<double>(w) - 5, 3};
      const double d = probe.Read(world, {&point, 1})[0];
      sum += d;
      sum2 += d * d;
    }
    const double variance = 0.7 * 0.7;
    EXPECT_NEAR(sum / kWorlds, 0, 5 * std::sqrt(variance / kWorlds));
    EXPECT_NEAR(sum2 / kWorlds, variance, 5 * variance * std::sqrt((2 - 1.5 / modes) / kWorlds));
  }
}

// The cut of a field along a line, seen through a Hann window, as a power spectrum over worlds.
struct Spectrum {
  std::vector<double> wave_number;  // rad/m
  std::vector<Estimate> power;      // (m/s)^2 per rad/m, one-sided
};

Spectrum MeasureCut(const DisturbanceOptions& options, Key key, Point direction, int num_worlds) {
  constexpr int kPoints = 512;
  constexpr double kSpacing = 0.01;  // m
  constexpr int kFirstBin = 4;
  constexpr int kLastBin = 32;
  std::vector<double> cosine(kPoints), sine(kPoints), window(kPoints);
  double window2 = 0;
  for (std::size_t at = 0; at < kPoints; ++at) {
    const double angle = kTwoPi * static_cast<double>(at) / kPoints;
    cosine[at] = std::cos(angle);
    sine[at] = std::sin(angle);
    window[at] = 0.5 - 0.5 * cosine[at];
    window2 += window[at] * window[at];
  }
  std::vector<Point> points(kPoints);
  for (std::size_t at = 0; at < kPoints; ++at) {
    const double s = kSpacing * static_cast<double>(at);
    points[at] = {s * direction.x, s * direction.y};
  }
  constexpr std::size_t kBins = kLastBin - kFirstBin + 1;
  std::vector<std::vector<double>> periodograms(kBins);
  Probe probe;
  for (int w = 0; w < num_worlds; ++w) {
    std::vector<double> d =
        probe.Read(MakeWorld(options, key.Fork(static_cast<std::uint64_t>(w))), points);
    for (std::size_t at = 0; at < kPoints; ++at) d[at] *= window[at];
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      double real = 0;
      double imaginary = 0;
      for (std::size_t at = 0; at < kPoints; ++at) {
        const std::size_t turn = (bin + kFirstBin) * at % kPoints;
        real += d[at] * cosine[turn];
        imaginary -= d[at] * sine[turn];
      }
      // Two sides folded into one; per rad/m instead of per cycle/m.
      periodograms[bin].push_back(2 * kSpacing * (real * real + imaginary * imaginary) / window2 /
                                  kTwoPi);
    }
  }
  Spectrum spectrum;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    spectrum.wave_number.push_back(kTwoPi * static_cast<double>(bin + kFirstBin) /
                                   (kPoints * kSpacing));
    spectrum.power.push_back(MeanOf(periodograms[bin]));
  }
  return spectrum;
}

// Least squares of ln power over ln k, each octave weighing the same.
double FitSlope(const Spectrum& spectrum) {
  double w_sum = 0, x_sum = 0, y_sum = 0, xx_sum = 0, xy_sum = 0;
  for (std::size_t bin = 0; bin < spectrum.wave_number.size(); ++bin) {
    const double weight = 1 / spectrum.wave_number[bin];
    const double x = std::log(spectrum.wave_number[bin]);
    const double y = std::log(spectrum.power[bin].mean);
    w_sum += weight;
    x_sum += weight * x;
    y_sum += weight * y;
    xx_sum += weight * x * x;
    xy_sum += weight * x * y;
  }
  return (xy_sum - x_sum * y_sum / w_sum) / (xx_sum - x_sum * x_sum / w_sum);
}

// L = 1 m and waves down to 0.02 m: the bins lie between 6 k0 and an eighth of the cut-off, where
// Eq. 5's spectrum falls with slopes from -1.63 to -1.69.
TEST(VonKarmanField, HasTheVonKarmanSpectrumAlongAnyLine) {
  const DisturbanceOptions options = Field(1, 0.02, 64);
  const double variance = options.intensity * options.intensity;
  const double share = 1 - 1 / std::cbrt(1 + std::pow(1.339 * kTwoPi / 0.02, 2));
  for (const Point& direction : {Point{1, 0}, Point{0, 1}, Point{0.6, -0.8}}) {
    const Spectrum spectrum = MeasureCut(options, Key(6), direction, 700);
    EXPECT_NEAR(FitSlope(spectrum), -5.0 / 3, 0.1);
    for (std::size_t bin = 0; bin < spectrum.wave_number.size(); ++bin) {
      const double k = spectrum.wave_number[bin];
      const double expected =
          variance / share * 2 / std::numbers::pi * std::pow(1 + std::pow(1.339 * k, 2), -5.0 / 6);
      // Five standard errors, and 4 % for the window's width and the missing waves beyond the cut.
      EXPECT_NEAR(spectrum.power[bin].mean, expected,
                  5 * spectrum.power[bin].error + 0.04 * expected)
          << "k = " << k << " rad/m";
    }
  }
}

// Correlation of Eq. 5's field over the distance r: the mean of J0(k r) over the shares of the
// variance, k(u) = k0 sqrt((1 - u)^-3 - 1) for u up to the cut-off's share.
double ExpectedCorrelation(double length_scale, double shortest_wavelength, double r) {
  const double k0 = 1 / (1.339 * length_scale);
  const double cutoff = kTwoPi / shortest_wavelength / k0;
  const double share = 1 - 1 / std::cbrt(1 + cutoff * cutoff);
  constexpr int kSteps = 4000;
  double sum = 0;
  for (int step = 0; step < kSteps; ++step) {
    const double u = share * (step + 0.5) / kSteps;
    sum += std::cyl_bessel_j(0, k0 * std::sqrt(std::pow(1 - u, -3) - 1) * r);
  }
  return sum / kSteps;
}

TEST(VonKarmanField, ForgetsOverItsLengthScale) {
  constexpr int kWorlds = 1500;
  const std::vector<double> distances = {0.1, 0.5, 1, 3};
  std::vector<double> shorter_scale(distances.size(), -1);
  for (const double length_scale : {0.5, 1.0, 2.0}) {
    Probe probe;
    // Eight far places per world, each with its neighbours at the distances in turning directions.
    std::vector<std::vector<double>> products(distances.size());
    for (std::uint64_t w = 0; w < kWorlds; ++w) {
      const World world = MakeWorld(Field(length_scale, 0.25, 32), Key(7).Fork(w));
      std::vector<Point> points;
      for (int place = 0; place < 8; ++place) {
        const double x = 20.0 * place;
        points.push_back({x, 0});
        for (const double r : distances) {
          points.push_back({x + r * std::cos(0.4 * place), r * std::sin(0.4 * place)});
        }
      }
      const std::vector<double> d = probe.Read(world, points);
      const std::size_t stride = distances.size() + 1;
      for (std::size_t at = 0; at < distances.size(); ++at) {
        double mean = 0;
        for (std::size_t place = 0; place < 8; ++place) {
          mean += d[place * stride] * d[place * stride + 1 + at] / 8 / (0.7 * 0.7);
        }
        products[at].push_back(mean);
      }
    }
    for (std::size_t at = 0; at < distances.size(); ++at) {
      const Estimate correlation = MeanOf(products[at]);
      EXPECT_NEAR(correlation.mean, ExpectedCorrelation(length_scale, 0.25, distances[at]),
                  5 * correlation.error)
          << "L = " << length_scale << ", r = " << distances[at];
      EXPECT_GT(correlation.mean, shorter_scale[at]) << "grows with the length scale";
      shorter_scale[at] = correlation.mean;
    }
  }
}

TEST(VonKarmanField, OfOneWorldKnowsNothingOfItsNeighbours) {
  constexpr int kWorlds = 10000;
  Probe probe;
  std::vector<double> values;
  const Point point{1, 2};
  for (std::uint64_t w = 0; w < kWorlds; ++w) {
    values.push_back(probe.Read(MakeWorld(Field(1, 0.25, 32), Key(8).Fork(w)), {&point, 1})[0]);
  }
  for (std::size_t distance = 1; distance <= 3; ++distance) {
    double sum = 0;
    for (std::size_t w = 0; w + distance < values.size(); ++w) {
      sum += values[w] * values[w + distance] / (0.7 * 0.7);
    }
    EXPECT_LT(std::fabs(sum / kWorlds), 5 / std::sqrt(kWorlds)) << "distance " << distance;
  }
}

TEST(Disturb, SharesThePushByItsGain) {
  DisturbanceOptions options = Field(1, 0.25, 32);
  options.gain = {2, -3, 0.5};
  const World world = MakeWorld(options, Key(9));
  Batch batch(16, Lidar({1, 5, 0, 0}));
  batch.Place(0, world, {1, 2, 0}, Key(0));
  Disturb(BestKernel(), 1, batch);
  const double d = NaiveField(world.disturbance, {1, 2});
  EXPECT_NEAR(batch.push_x[0], 2 * d, 1e-3);
  EXPECT_NEAR(batch.push_y[0], -3 * d, 1e-3);
  EXPECT_NEAR(batch.push_heading[0], 0.5 * d, 1e-3);
  EXPECT_GT(std::fabs(d), 0.01);
}

TEST(Disturb, DoesNotPushWithoutADisturbance) {
  const World world;
  Batch batch(16, Lidar({1, 5, 0, 0}));
  batch.Place(0, world, {1, 2, 0}, Key(0));
  batch.push_x[0] = batch.push_y[0] = batch.push_heading[0] = 9;
  Disturb(BestKernel(), 1, batch);
  EXPECT_EQ(batch.push_x[0], 0.0F);
  EXPECT_EQ(batch.push_y[0], 0.0F);
  EXPECT_EQ(batch.push_heading[0], 0.0F);
}

World NoisyWorld(double half_width) {
  DisturbanceOptions options;
  options.kind = Disturbance::Kind::kUniformNoise;
  options.half_width = half_width;
  return MakeWorld(options, Key(10));
}

// The number Eq. 5 names: word t mod 4 of block t / 4 under the episode's key.
float ExpectedNoise(Key key, int step, float half_width) {
  const RandomBlock block = key.Block(static_cast<std::uint64_t>(step / 4));
  return half_width * (2 * UnitFloat(block[static_cast<std::size_t>(step % 4)]) - 1);
}

TEST(UniformNoise, TakesItsNumbersFromTheEpisodesKey) {
  const World world = NoisyWorld(0.2);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    Batch batch(16, Lidar({1, 5, 0, 0}));
    // Episodes that begin at different times, so that their noise is not drawn together.
    const auto key_of = [](int slot) { return Key(11).Fork(static_cast<std::uint64_t>(slot)); };
    for (int time = 0; time < 200; ++time) {
      const int active = std::min(time / 5 + 1, 16);
      if (time % 5 == 0 && time / 5 < 16) batch.Place(time / 5, world, {}, key_of(time / 5));
      Disturb(kernel, active, batch);
      for (int slot = 0; slot < active; ++slot) {
        const auto at = static_cast<std::size_t>(slot);
        ASSERT_EQ(batch.push_x[at], ExpectedNoise(key_of(slot), batch.step[at], 0.2F))
            << "slot " << slot << ", step " << batch.step[at];
        ++batch.step[at];
      }
    }
  }
}

// An episode that moves to another slot in mid-flight keeps its noise.
TEST(UniformNoise, MovesWithItsEpisode) {
  const World world = NoisyWorld(0.2);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    Batch batch(16, Lidar({1, 5, 0, 0}));
    for (int slot = 0; slot < 3; ++slot) {
      batch.Place(slot, world, {}, Key(12).Fork(static_cast<std::uint64_t>(slot)));
    }
    int slot = 2;
    for (int step = 0; step < 100; ++step) {
      if (step == 45) batch.Move(2, slot = 0);
      Disturb(kernel, slot + 1, batch);
      const auto at = static_cast<std::size_t>(slot);
      ASSERT_EQ(batch.push_x[at], ExpectedNoise(Key(12).Fork(2), step, 0.2F)) << "step " << step;
      for (int active = 0; active <= slot; ++active) ++batch.step[static_cast<std::size_t>(active)];
    }
  }
}

// U(-h, h) has mean 0, variance h^2 / 3 and fourth moment h^4 / 5, so h^2 / 3 is estimated with the
// standard deviation h^2 sqrt(4 / 45 / n). One episode's noise says nothing about the next one's.
TEST(UniformNoise, IsUniformAndFreshInEachEpisode) {
  constexpr int kEpisodes = 400;
  constexpr int kSteps = 50;
  const World world = NoisyWorld(2);
  Batch batch(kEpisodes, Lidar({1, 5, 0, 0}));
  for (int slot = 0; slot < kEpisodes; ++slot) {
    batch.Place(slot, world, {}, Key(13).Fork(static_cast<std::uint64_t>(slot)));
  }
  double sum = 0, sum2 = 0, with_next_step = 0, with_next_episode = 0, largest = 0;
  std::vector<float> before(kEpisodes);
  for (int step = 0; step < kSteps; ++step) {
    Disturb(BestKernel(), kEpisodes, batch);
    for (std::size_t slot = 0; slot < kEpisodes; ++slot) {
      const double d = batch.push_x[slot];
      ASSERT_GE(d, -2);
      ASSERT_LT(d, 2);
      largest = std::max(largest, std::fabs(d));
      sum += d;
      sum2 += d * d;
      with_next_step += d * before[slot];
      if (slot > 0) with_next_episode += d * static_cast<double>(batch.push_x[slot - 1]);
      before[slot] = batch.push_x[slot];
      ++batch.step[slot];
    }
  }
  constexpr double kN = kEpisodes * kSteps;
  constexpr double kVariance = 4.0 / 3;
  EXPECT_NEAR(sum / kN, 0, 5 * std::sqrt(kVariance / kN));
  EXPECT_NEAR(sum2 / kN, kVariance, 5 * 4 * std::sqrt(4.0 / 45 / kN));
  EXPECT_NEAR(with_next_step / kN, 0, 5 * kVariance / std::sqrt(kN));
  EXPECT_NEAR(with_next_episode / kN, 0, 5 * kVariance / std::sqrt(kN));
  EXPECT_GT(largest, 1.999);
}

}  // namespace
}  // namespace fedgen
