// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/random.h"

#include <Random123/philox.h>

namespace fedgen {
namespace {

// Third counter word: what the block is for.
constexpr std::uint32_t kDrawDomain = 0;
constexpr std::uint32_t kForkDomain = 1;

RandomBlock Philox(std::uint64_t key, std::uint64_t index, std::uint32_t domain) {
  const philox4x32_ctr_t counter = {
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), domain, 0}};
  const philox4x32_key_t philox_key = {
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}};
  const philox4x32_ctr_t block = philox4x32(counter, philox_key);
  return {block.v[0], block.v[1], block.v[2], block.v[3]};
}

}  // namespace

Key Key::Fork(std::uint64_t index) const {
  const RandomBlock block = Philox(bits_, index, kForkDomain);
  return Key(block[0] | static_cast<std::uint64_t>(block[1]) << 32);
}

RandomBlock Key::Block(std::uint64_t index) const { return Philox(bits_, index, kDrawDomain); }

}  // namespace fedgen
