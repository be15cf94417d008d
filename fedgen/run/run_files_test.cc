// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "fedgen/base/file.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class RunFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "run_files_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Path(const std::string& name) const { return (root_ / name).string(); }
  static void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(path, text, IfExists::kReplace));
  }
  static std::string Read(const std::string& path) { return *ReadFile(path, 1 << 20); }
  std::vector<std::string> Names(const std::string& directory) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  fs::path root_;
};

TEST_F(RunFilesTest, CreateRunMakesADirectoryThatOpens) {
  for (const char* name : {"run", "deep/er/run", "slash/", "deep/slash//", "./dot/../dotted"}) {
    SCOPED_TRACE(name);
    const auto files = CreateRun(Path(name), {7, "quick"}, "[world]\n");
    ASSERT_TRUE(files) << files.error().message;
    EXPECT_EQ(Read(files->Config()), "[world]\n");
    EXPECT_EQ(LoadRunIdentity(*files)->seed, 7U);
    EXPECT_EQ(LoadRunIdentity(*files)->config_name, "quick");
    const auto opened = OpenRun(Path(name));
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->directory(), files->directory());
    EXPECT_THAT(Names(files->directory()),
                UnorderedElementsAre("run.json", "config.toml", "policies", "figures"));
  }
  EXPECT_THAT(Names(root_.string()), UnorderedElementsAre("run", "deep", "slash", "dotted"));
}

TEST_F(RunFilesTest, CreateRunRefusesWhatExists) {
  ASSERT_TRUE(CreateRun(Path("run"), {7, "quick"}, "one\n"));
  for (const char* name : {"run", "run/", "./run"}) {
    const auto again = CreateRun(Path(name), {8, "other"}, "two\n");
    ASSERT_FALSE(again) << name;
    EXPECT_EQ(again.error().code, ErrorCode::kExists);
    EXPECT_THAT(again.error().message, HasSubstr("--resume"));
  }
  EXPECT_EQ(Read(Path("run/config.toml")), "one\n");
  EXPECT_THAT(Names(root_.string()), UnorderedElementsAre("run"));
  fs::create_directory(Path("full"));
  Write(Path("full/file"), "text");
  fs::create_symlink(Path("nowhere"), Path("link"));
  Write(Path("file"), "text");
  for (const char* name : {"full", "link", "file"}) {
    const auto result = CreateRun(Path(name), {8, "other"}, "two\n");
    ASSERT_FALSE(result) << name;
    EXPECT_EQ(result.error().code, ErrorCode::kExists) << name;
    EXPECT_EQ(result.error().message.find("--resume"), std::string::npos);
  }
  EXPECT_EQ(Read(Path("file")), "text");
  fs::create_directory(Path("empty"));  // whoever made it for the run loses nothing
  ASSERT_TRUE(CreateRun(Path("empty"), {8, "other"}, "two\n"));
  EXPECT_EQ(Read(Path("empty/config.toml")), "two\n");
  EXPECT_EQ(CreateRun("", {1, "c"}, "").error().code, ErrorCode::kUsage);
  EXPECT_FALSE(CreateRun(Path("file/run"), {1, "c"}, ""));
}

TEST_F(RunFilesTest, LeftoversOfAKilledProgramAreRemovedAndNothingElse) {
  const auto files = CreateRun(Path("run"), {7, "quick"}, "one\n");
  ASSERT_TRUE(files);
  Write(Path("run/checkpoint.fgc.123.4"), "half");
  Write(Path("run/policies/best.fgp.99.0"), "half");
  Write(Path("run/policies/best.fgp"), "whole");
  for (const char* mine : {"notes.txt", "notes.2024.11", "data.1.0", "a.csv.1", "b.csv.1.x"}) {
    Write(Path("run") + "/" + mine, "mine");
  }
  ASSERT_TRUE(OpenRun(Path("run/")));
  EXPECT_TRUE(fs::exists(Path("run/policies/best.fgp.99.0"))) << "somebody may be writing it";
  ASSERT_TRUE(RemoveLeftovers(*files));
  EXPECT_THAT(Names(Path("run")),
              UnorderedElementsAre("run.json", "config.toml", "policies", "figures", "notes.txt",
                                   "notes.2024.11", "data.1.0", "a.csv.1", "b.csv.1.x"));
  EXPECT_THAT(Names(Path("run/policies")), UnorderedElementsAre("best.fgp"));
  EXPECT_EQ(OpenRun(Path("none")).error().code, ErrorCode::kIo);
  fs::create_directory(Path("empty"));
  EXPECT_THAT(OpenRun(Path("empty")).error().message, HasSubstr("holds no run"));
  EXPECT_THAT(Names(Path("empty")), IsEmpty());
}

std::string Timing(std::initializer_list<TimingRow> rows) {
  std::string text = std::string(kTimingHeader) + "\n";
  for (const TimingRow& row : rows) text += FormatRow(row) + "\n";
  return text;
}

TEST_F(RunFilesTest, KeepRoundsDropsLaterRoundsAndHalfRows) {
  const auto files = CreateRun(Path("run"), {7, "quick"}, "one\n");
  ASSERT_TRUE(files);
  const TimingRow one{1, 1.5, 100}, two{2, 3.25, 200}, three{3, 4, 300}, twelve{12, 5, 400};
  const std::string whole = Timing({one, two, three, twelve});
  MetricsRow first, second;
  second.round = 2;
  const std::string metrics_header = std::string(kMetricsHeader) + "\n";
  const std::string metrics = metrics_header + FormatRow(first) + "\n" + FormatRow(second) + "\n";
  TruthRow zero, later;
  later.round = 2;
  const std::string truth_header = std::string(kTruthHeader) + "\n";
  const std::string truth = truth_header + FormatRow(zero) + "\n" + FormatRow(later) + "\n";
  const auto write = [&] {
    Write(files->Timing(), whole);
    Write(files->Metrics(), metrics);
    Write(files->Truth(), truth);
  };
  write();
  EXPECT_EQ(files->KeepRounds(2, {})->seconds, 3.25);
  EXPECT_EQ(Read(files->Timing()), Timing({one, two}));
  EXPECT_EQ(Read(files->Metrics()), metrics);
  EXPECT_EQ(Read(files->Truth()), truth);
  write();
  EXPECT_EQ(files->KeepRounds(1, {})->seconds, 1.5);
  EXPECT_EQ(Read(files->Timing()), Timing({one}));
  EXPECT_EQ(Read(files->Metrics()), metrics_header + FormatRow(first) + "\n");
  EXPECT_EQ(Read(files->Truth()), truth_header + FormatRow(zero) + "\n");  // round 0 stays
  write();
  EXPECT_EQ(files->KeepRounds(0, {})->seconds,
            0.0);  // before the first round everything is done again
  EXPECT_EQ(Read(files->Timing()), Timing({}));
  EXPECT_EQ(Read(files->Truth()), truth_header);

  // A kill at any byte of the last row.
  const std::string kept = Timing({one, two, three});
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    Write(files->Timing(), whole.substr(0, size));
    const auto tables = files->KeepRounds(3, {});
    ASSERT_TRUE(tables) << size;
    const std::string left = Read(files->Timing());
    EXPECT_TRUE(kept.starts_with(left)) << size;
    EXPECT_TRUE(ParseTiming(left, "t")) << size;
    EXPECT_EQ(left == kept, size >= kept.size()) << size;
  }
  fs::remove(files->Truth());
  ASSERT_TRUE(files->KeepRounds(3, {}));
  EXPECT_EQ(Read(files->Truth()), truth_header);
}

TEST_F(RunFilesTest, KeepRoundsRefusesRowsThatWereChanged) {
  const auto files = CreateRun(Path("run"), {7, "quick"}, "one\n");
  ASSERT_TRUE(files);
  auto tables = files->KeepRounds(0, {});
  ASSERT_TRUE(tables);
  MetricsRow row;
  TruthRow truth;
  ASSERT_TRUE(tables->metrics.Append(FormatRow(row) + "\n"));
  ASSERT_TRUE(tables->truth.Append(FormatRow(truth) + "\n"));
  ASSERT_TRUE(AppendToFile(files->Timing(), FormatRow(TimingRow{1, 1.5, 100}) + "\n"));
  const std::vector<FileMark> marks = {tables->metrics.Mark(), tables->truth.Mark()};
  EXPECT_EQ(marks[0].name, "metrics.csv");
  EXPECT_EQ(marks[0].bytes, Read(files->Metrics()).size());
  EXPECT_EQ(marks[0].sha256, Sha256Hex(Read(files->Metrics())));
  const std::string good = Read(files->Metrics());

  // What came after the mark goes, whatever it is; marks go on from there.
  row.round = 2;
  Write(files->Metrics(), good + FormatRow(row) + "\n2,1,runn");
  auto again = files->KeepRounds(1, marks);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(Read(files->Metrics()), good);
  EXPECT_EQ(again->metrics.Mark(), marks[0]);
  EXPECT_EQ(again->seconds, 1.5);

  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    for (const std::string& bytes : {changed, good.substr(0, at)}) {
      Write(files->Metrics(), bytes);
      const auto refused = files->KeepRounds(1, marks);
      ASSERT_FALSE(refused) << at;
      EXPECT_EQ(refused.error().code, ErrorCode::kData);
      EXPECT_THAT(refused.error().message, HasSubstr("metrics.csv: its rows up to round 1 must"));
      EXPECT_EQ(Read(files->Metrics()), bytes) << "nothing is lost";
    }
  }
}

TEST_F(RunFilesTest, OnlyOneProcessHoldsARun) {
  const auto files = CreateRun(Path("run"), {1, "quick"}, "");
  ASSERT_TRUE(files);
  {
    const auto first = RunLock::Take(*files);
    ASSERT_TRUE(first);
    const auto second = RunLock::Take(*files);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kIo);
    EXPECT_NE(second.error().message.find("another process is training here"), std::string::npos);
  }
  EXPECT_TRUE(RunLock::Take(*files)) << "free again";
}

TEST(RunIdentity, ComesBack) {
  for (const std::uint64_t seed :
       {std::uint64_t{0}, std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max()}) {
    const std::string text = RunIdentityToJson({seed, "a \"name\"\n"});
    ASSERT_TRUE(nlohmann::json::accept(text));
    const Result<RunIdentity> back = ParseRunIdentity(text, "run.json");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->seed, seed);
    EXPECT_EQ(back->config_name, "a \"name\"\n");
  }
  EXPECT_TRUE(nlohmann::json::accept(RunIdentityToJson({1, "\xff\xfe"})));  // no UTF-8
}

TEST(RunIdentity, MalformedIsOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "format"},
      {"{", "format"},
      {"[]", "format"},
      {"null", "format"},
      {R"({"format": 3})", "format"},
      {R"({"format": "fedgen-run-summary"})", "format"},
      {R"({"format": "fedgen-run"})", "version"},
      {R"({"format": "fedgen-run", "version": 2})", "version"},
      {R"({"format": "fedgen-run", "version": 1})", "seed"},
      {R"({"format": "fedgen-run", "version": 1, "seed": -1})", "seed"},
      {R"({"format": "fedgen-run", "version": 1, "seed": 1.5})", "seed"},
      {R"({"format": "fedgen-run", "version": 1, "seed": "1"})", "seed"},
      {R"({"format": "fedgen-run", "version": 1, "seed": 18446744073709551616})", "seed"},
      {R"({"format": "fedgen-run", "version": 1, "seed": 1})", "config"},
      {R"({"format": "fedgen-run", "version": 1, "seed": 1, "config": []})", "config"},
  };
  for (const auto& [text, field] : cases) {
    const Result<RunIdentity> result = ParseRunIdentity(text, "run.json");
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kData);
    EXPECT_THAT(result.error().message, HasSubstr(std::string("run.json: ") + field)) << text;
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  }
  EXPECT_FALSE(ParseRunIdentity(R"({"format":)" + std::string(400000, '['), "r"));  // deep
  const std::string whole = RunIdentityToJson({5, "c"});
  for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
    EXPECT_FALSE(ParseRunIdentity(std::string_view(whole).substr(0, size), "r")) << size;
  }
}

}  // namespace
}  // namespace fedgen
