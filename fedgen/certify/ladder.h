// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace fedgen {

// The sizes a certificate may have, and what each may risk (Eq. 41).
//
// A certificate of n worlds drives the first n of one stream. Whoever makes it could look at
// several n and show the luckiest. So n is one of a few rungs, fixed for everybody, and each rung
// owns a share of the risk. The shares sum to 1: by the union bound the promises of all rungs hold
// together with the confidence that each of them states, and choosing among them gains nothing.
//
// The middle has the most, where most certificates are made: 100,000 worlds have a quarter, which
// costs a policy that fails in 0.4 % of worlds 0.0001 of its bound.

struct Rung {
  std::int64_t worlds;
  int share;  // of the risk, in 64ths
};

inline constexpr int kShares = 64;
inline constexpr std::array<Rung, 13> kLadder = {{{100, 1},
                                                  {300, 1},
                                                  {1'000, 4},
                                                  {3'000, 4},
                                                  {10'000, 8},
                                                  {30'000, 8},
                                                  {100'000, 16},
                                                  {300'000, 8},
                                                  {1'000'000, 8},
                                                  {3'000'000, 2},
                                                  {10'000'000, 2},
                                                  {30'000'000, 1},
                                                  {100'000'000, 1}}};

/// 100,000,000: keeps the memory of a certification below 3 GB (0.8 GB with one start per world).
inline constexpr std::int64_t kMaxCertificateWorlds = kLadder.back().worlds;

/// What to say about any other size.
inline constexpr const char* kLadderRule =
    "must be 1 or 3 times a power of ten, from 100 to 100000000 (so that nobody can choose a lucky "
    "size)";

constexpr bool IsRung(std::int64_t worlds) {
  for (const Rung& rung : kLadder) {
    if (rung.worlds == worlds) return true;
  }
  return false;
}

/// The share of the risk that a rung owns, in (0, 1]. Requires IsRung(worlds).
double RiskShare(std::int64_t worlds);

/// What one of a certificate's two statements may risk: half of the rung's share of 1 - confidence
/// (Eq. 40). Requires IsRung(worlds) and 0 < confidence < 1.
double StatementRisk(std::int64_t worlds, double confidence);

}  // namespace fedgen
