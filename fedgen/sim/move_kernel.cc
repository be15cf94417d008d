// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/move_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/sim/move_kernel.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"
#include "fedgen/base/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

void FaceHeadingLanes(int first, int last, Batch& batch) {
  for (int slot = first - first % kLanes; slot < last; slot += kLanes) {
    const SinCosResult direction = SinCos(Load(batch.heading.data() + slot));
    Store(direction.cos, batch.cos.data() + slot);
    Store(direction.sin, batch.sin.data() + slot);
  }
}

/// cos 2 pi u by an odd polynomial of degree 7, off by less than 1e-6. It defines the field, so its
/// error is no error.
HWY_INLINE F CosineOfCycles(F u) {
  // v in [-1/4, 1/4] with cos 2 pi u = -sin 2 pi v.
  const F v = Abs(u - Round(u)) - Set(0.25f);
  const F v2 = v * v;
  F p = Fma(v2, Set(70.9934328f), Set(-81.3407688f));
  p = Fma(v2, p, Set(41.3371424f));
  p = Fma(v2, p, Set(-6.28316404f));
  return p * v;
}

// Eq. 5. The sum over modes is eight interleaved partial sums, added pairwise at the end: an order
// that eight lanes and one lane can both follow.
HWY_INLINE float FieldAt(const Disturbance& push, float x, float y) {
  constexpr int kPartials = kLaneGroup;
  alignas(32) float partial[kPartials] = {};
  const int num_modes = static_cast<int>(push.kx.size());
  for (int lane = 0; lane < kPartials; lane += kLanes) {
    F sum = Set(0.0f);
    for (int mode = lane; mode < num_modes; mode += kPartials) {
      const F cycles =
          Fma(Load(push.kx.data() + mode), Set(x),
              Fma(Load(push.ky.data() + mode), Set(y), Load(push.phase.data() + mode)));
      sum = sum + CosineOfCycles(cycles);
    }
    Store(sum, partial + lane);
  }
  const float sum = ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
                    ((partial[4] + partial[5]) + (partial[6] + partial[7]));
  return push.amplitude * sum;
}

// Step t of an episode takes its noise from word t mod 4 of block t / 4 under the episode's key;
// eight blocks, 32 steps, are drawn at a time.
HWY_INLINE void DrawNoise(std::size_t slot, const Disturbance& push, Batch& batch) {
  constexpr int kBlocks = Batch::kNoiseSteps / 4;
  float* noise = batch.noise.data() + slot * Batch::kNoiseSteps;
  const F half_width = Set(push.half_width);
  for (int block = 0; block < kBlocks; block += kLanes) {
    const int index = batch.step[slot] / 4 + block;
    const WordBlock words =
        PhiloxBlocks(batch.noise_key[slot].bits(), static_cast<std::uint64_t>(index));
    // Stored word by word: noise[w * kBlocks + b] is word w of block b.
    const auto centred = [&](Words w) HWY_ATTR {
      return half_width * Fma(UnitFloats(w), Set(2.0f), Set(-1.0f));
    };
    Store(centred(words.w0), noise + 0 * kBlocks + block);
    Store(centred(words.w1), noise + 1 * kBlocks + block);
    Store(centred(words.w2), noise + 2 * kBlocks + block);
    Store(centred(words.w3), noise + 3 * kBlocks + block);
  }
}

HWY_INLINE float NoiseAt(std::size_t slot, Batch& batch) {
  constexpr std::uint32_t kBlocks = Batch::kNoiseSteps / 4;
  const auto phase = static_cast<std::uint32_t>(batch.step[slot]) % Batch::kNoiseSteps;
  if (phase == 0) DrawNoise(slot, batch.world[slot]->disturbance, batch);
  return batch.noise[slot * Batch::kNoiseSteps + phase % 4 * kBlocks + phase / 4];
}

void DisturbLanes(int last, Batch& batch) {
  for (int index = 0; index < last; ++index) {
    const auto slot = static_cast<std::size_t>(index);
    float d = 0;
    if (batch.push_kind[slot] == Disturbance::Kind::kVonKarman) {
      d = FieldAt(batch.world[slot]->disturbance, batch.x[slot], batch.y[slot]);
    } else if (batch.push_kind[slot] == Disturbance::Kind::kUniformNoise) {
      d = NoiseAt(slot, batch);
    }
    batch.push[slot] = d;
  }
  for (int slot = 0; slot < last; slot += kLanes) {
    const F d = Load(batch.push.data() + slot);
    Store(Load(batch.gain_x.data() + slot) * d, batch.push_x.data() + slot);
    Store(Load(batch.gain_y.data() + slot) * d, batch.push_y.data() + slot);
    Store(Load(batch.gain_heading.data() + slot) * d, batch.push_heading.data() + slot);
  }
}

void AdvanceLanes(bool is_car, float limit_value, float inverse_length, float speed, float dt,
                  int last, Batch& batch) {
  const F limit = Set(limit_value);
  const F time_step = Set(dt);
  for (int slot = 0; slot < last; slot += kLanes) {
    const F u = Clamp(Load(batch.control.data() + slot), Set(0.0f) - limit, limit);
    F turn_rate = u;
    if (is_car) {
      const SinCosResult steering = SinCos(u);
      turn_rate = steering.sin / steering.cos * Set(inverse_length);
    }
    const F cos = Load(batch.cos.data() + slot);
    const F sin = Load(batch.sin.data() + slot);
    const F rate_x = Fma(Set(speed), cos, Load(batch.push_x.data() + slot));
    const F rate_y = Fma(Set(speed), sin, Load(batch.push_y.data() + slot));
    const F rate_heading = turn_rate + Load(batch.push_heading.data() + slot);
    // Kept within half a turn, so that sine and cosine stay exact however long the robot circles.
    F heading = Fma(time_step, rate_heading, Load(batch.heading.data() + slot));
    heading = NegFma(Round(heading * Set(0.15915494f)), Set(6.2831853f), heading);
    const SinCosResult direction = SinCos(heading);
    Store(Fma(time_step, rate_x, Load(batch.x.data() + slot)), batch.x.data() + slot);
    Store(Fma(time_step, rate_y, Load(batch.y.data() + slot)), batch.y.data() + slot);
    Store(heading, batch.heading.data() + slot);
    Store(direction.cos, batch.cos.data() + slot);
    Store(direction.sin, batch.sin.data() + slot);
  }
  for (std::size_t slot = 0; slot < static_cast<std::size_t>(last); ++slot) ++batch.step[slot];
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedgen {

void FaceHeading(Kernel kernel, int first, int last, Batch& batch) {
  FEDGEN_LANES_DISPATCH(kernel, FaceHeadingLanes)(first, last, batch);
}

void Disturb(Kernel kernel, int last, Batch& batch) {
  FEDGEN_LANES_DISPATCH(kernel, DisturbLanes)(last, batch);
}

void Advance(Kernel kernel, const RobotOptions& robot, float time_step, int last, Batch& batch) {
  FEDGEN_LANES_DISPATCH(kernel, AdvanceLanes)
  (robot.kind == RobotOptions::Kind::kCar, static_cast<float>(ControlLimit(robot)),
   static_cast<float>(1.0 / robot.length), static_cast<float>(robot.speed), time_step, last, batch);
}

}  // namespace fedgen
#endif
