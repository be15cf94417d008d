// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "fedgen/base/aligned.h"
#include "fedgen/base/kernel.h"

namespace fedgen {

// The arithmetic of a way map (Eq. 45): distances on a grid, eight cells at a time.
//
// A sweep is Gauss-Seidel from one corner of the grid to the opposite one. Cells of one diagonal do
// not depend on each other, so the field is stored by diagonals: cell (i, j) is entry i of diagonal
// i + j. The outermost cells of the grid and entries that are no cells hold kBlocked.

inline constexpr float kUnreached = 1e9F;  // m; a free cell that no way has reached (yet)
inline constexpr float kBlocked = 2e9F;    // m; a cell that no way passes

struct WayGrid {
  int columns = 0, rows = 0;  // of cells, with a border of one
  float cell = 0;             // m

  int stride() const { return PadToLaneGroup(columns); }
  /// Of a field stored by rows, with the eight floats past its end that a kernel may read.
  std::size_t size_by_rows() const { return Entry(rows) + kLaneGroup; }
  std::size_t size_by_diagonals() const { return Entry(columns + rows) + kLaneGroup; }
  std::size_t ByRows(int i, int j) const { return Entry(j) + static_cast<std::size_t>(i); }
  std::size_t ByDiagonals(int i, int j) const { return Entry(i + j) + static_cast<std::size_t>(i); }

 private:
  std::size_t Entry(int line) const {
    return static_cast<std::size_t>(line) * static_cast<std::size_t>(stride());
  }
};

enum class SweepOrder { kRising, kFalling };  // of i + j

/// Lowers each cell of a field stored by diagonals to what its neighbours say (Eq. 45), in this
/// order. Returns whether one fell by more than a thousandth of a cell; if not, all agree.
bool SweepDiagonals(Kernel kernel, const WayGrid& grid, SweepOrder order, float* field);

/// Makes each blocked cell with reached cells around it one cell farther than the farthest of them,
/// so that it never attracts, in a field stored by rows. `to` receives all rows but the first and
/// the last; the border stays blocked.
void ExtendByOneCell(Kernel kernel, const WayGrid& grid, const float* from, float* to);

}  // namespace fedgen
