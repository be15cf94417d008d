// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fedgen/base/file_testing.h"

namespace fedgen {

// The program as its users meet it: run through a shell, in a directory of its own for each test
// that is gone afterwards. FEDGEN_PROGRAM is its path.

/// What a program said, and how it ended.
struct Ran {
  int exit_code = -1;  // -1: killed
  std::string out, err;
};

/// The bytes of a file; none if there is no such file.
inline std::string Slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ProgramTest : public ::testing::Test {
 protected:
  /// The exit code of a shell command in the test's directory; -1 if a signal ended it.
  int Shell(const std::string& command) const {
    const int status = std::system(("cd '" + directory_.string() + "' && " + command).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  /// Runs the program; `before` is shell text in front of it, such as a variable or a limit.
  Ran Run(const std::string& arguments, const std::string& before = "") const {
    const int exit_code =
        Shell(before + "'" FEDGEN_PROGRAM "' " + arguments + " >.out 2>.err </dev/null");
    return {exit_code, Slurp(directory_ / ".out"), Slurp(directory_ / ".err")};
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name, std::ios::binary) << text;
  }

  /// A mistake: the documented exit code, nothing on stdout, one line on stderr that says this.
  void ExpectMistake(const std::string& arguments, int exit_code, const std::string& says,
                     const std::string& before = "") const {
    const Ran ran = Run(arguments, before);
    EXPECT_EQ(ran.exit_code, exit_code) << arguments << "\n" << ran.err;
    EXPECT_EQ(ran.out, "") << arguments;
    EXPECT_THAT(ran.err, ::testing::StartsWith("fedgen: ")) << arguments;
    EXPECT_THAT(ran.err, ::testing::HasSubstr(says)) << arguments;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }

  const TemporaryDirectory temporary_;
  const std::filesystem::path directory_ = temporary_.path();
};

}  // namespace fedgen
