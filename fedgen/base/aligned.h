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

/// Asks for the cache lines of what will soon be written: another core may have them, and a write
/// would wait until they are here. Of memory that is not there it asks for nothing.
inline void PrefetchToWrite(const void* first, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < bytes; at += kLine) {
    __builtin_prefetch(static_cast<const char*>(first) + at, 1);
  }
}

}  // namespace fedgen
