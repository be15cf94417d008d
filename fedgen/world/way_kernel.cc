// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/way_kernel.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/world/way_kernel.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

bool SweepDiagonalsLanes(const WayGrid& grid, SweepOrder order, float* field) {
  const F cell = Set(grid.cell);
  const F twice_cell2 = Set(2 * grid.cell * grid.cell);
  const int num_diagonals = grid.columns + grid.rows - 5;  // with a cell inside the border
  const std::ptrdiff_t stride = grid.stride();
  F largest_fall = Set(0.0f);
  for (int count = 0; count < num_diagonals; ++count) {
    const int diagonal = order == SweepOrder::kRising ? 2 + count : num_diagonals + 1 - count;
    const int first = std::max(1, diagonal - (grid.rows - 2));
    const int last = std::min(grid.columns - 2, diagonal - 1);
    float* here = field + diagonal * stride;
    const float* before = here - stride;
    const float* after = here + stride;
    // Eights may begin before the first cell and end after the last one: those entries are blocked.
    for (int i = first - first % kLanes; i <= last; i += kLanes) {
      const F old = Load(here + i);
      const F beside = Min(LoadUnaligned(before + i - 1), LoadUnaligned(after + i + 1));
      const F along = Min(Load(before + i), Load(after + i));
      const F slope = Min(Abs(beside - along), cell);
      const F rise = slope + Sqrt(NegFma(slope, slope, twice_cell2));
      const F found = Min(old, Fma(Set(0.5f), rise, Min(beside, along)));
      const F now = Select(old < Set(kBlocked), found, old);
      largest_fall = Max(largest_fall, old - now);
      Store(now, here + i);
    }
  }
  return Any(largest_fall > Set(1e-3f * grid.cell));
}

void ExtendByOneCellLanes(const WayGrid& grid, const float* from, float* to) {
  const F unreached = Set(kUnreached);
  const F none = Set(-kUnreached);
  const std::ptrdiff_t stride = grid.stride();
  const auto known = [&](F value) HWY_ATTR { return Select(value < unreached, value, none); };
  for (int j = 1; j < grid.rows - 1; ++j) {
    for (int i = 0; i < grid.columns; i += kLanes) {
      const float* here = from + j * stride + i;
      F farthest = none;
      for (const float* row : {here - stride, here, here + stride}) {
        // Nothing is before the very first cell; its row is blocked throughout, so it may stand in.
        farthest = Max(farthest, known(LoadUnaligned(row == from ? row : row - 1)));
        farthest = Max(farthest, known(Load(row)));
        farthest = Max(farthest, known(LoadUnaligned(row + 1)));
      }
      const F old = Load(here);
      const Mask extends = And(old > unreached, farthest > none);
      Store(Select(extends, farthest + Set(grid.cell), old), to + j * stride + i);
    }
    to[j * stride] = to[j * stride + grid.columns - 1] = kBlocked;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedgen {

bool SweepDiagonals(Kernel kernel, const WayGrid& grid, SweepOrder order, float* field) {
  return FEDGEN_LANES_DISPATCH(kernel, SweepDiagonalsLanes)(grid, order, field);
}

void ExtendByOneCell(Kernel kernel, const WayGrid& grid, const float* from, float* to) {
  FEDGEN_LANES_DISPATCH(kernel, ExtendByOneCellLanes)(grid, from, to);
}

}  // namespace fedgen
#endif
