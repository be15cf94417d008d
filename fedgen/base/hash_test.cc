// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/hash.h"

#include <gtest/gtest.h>

namespace fedgen {
namespace {

// The examples of FIPS 180-4: nothing, one block, two blocks, a million letters.
TEST(Sha256, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, WordIsTheFirstSixteenDigits) {
  EXPECT_EQ(Sha256Word(""), 0xe3b0c44298fc1c14U);
  EXPECT_EQ(Sha256Word("abc"), 0xba7816bf8f01cfeaU);
}

TEST(Sha256, ReadsZeroBytesToo) {
  EXPECT_NE(Sha256Hex(std::string_view("\0", 1)), Sha256Hex(""));
  EXPECT_NE(Sha256Hex(std::string_view("a\0b", 3)), Sha256Hex("a"));
}

TEST(RunningSha256, IsTheDigestOfAllPieces) {
  RunningSha256 running;
  std::string all;
  EXPECT_EQ(running.Hex(), Sha256Hex(""));
  for (const std::size_t size : {1UL, 63UL, 64UL, 65UL, 0UL, 1000UL}) {
    const std::string piece(size, static_cast<char>('a' + size % 7));
    running.Add(piece);
    all += piece;
    EXPECT_EQ(running.Hex(), Sha256Hex(all));
    EXPECT_EQ(running.Hex(), Sha256Hex(all)) << "asking changes nothing";
  }
}

}  // namespace
}  // namespace fedgen
