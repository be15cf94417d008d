// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace fedgen {

// Arrays that SIMD kernels may read eight floats at a time, to the end of the last group of eight.

inline constexpr int kLaneGroup = 8;  // kernels work on groups of this many floats

constexpr int PadToLaneGroup(int n) { return (n + kLaneGroup - 1) / kLaneGroup * kLaneGroup; }

template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;
  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>& /*other*/) {}  // NOLINT

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* pointer, std::size_t /*n*/) { ::operator delete(pointer, kAlignment); }
  bool operator==(const CacheLineAllocator& /*other*/) const { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace fedgen
