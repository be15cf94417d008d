// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/run_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/json-inl.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;

Error IoError(const std::string& path, const std::error_code& code) {
  return {ErrorCode::kIo, fmt::format("{}: {}", path, code.message())};
}

// Without dots and without a slash at the end: what stands there has a parent and a name.
fs::path PlainPath(const std::string& directory) {
  const fs::path path = fs::path(directory).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

// Whether this is half of a file of ours: AtomicFile's temporary names are those of the file with a
// process id and a counter behind.
bool IsLeftover(const fs::path& path) {
  fs::path name = path.filename();
  for (int part = 0; part < 2; ++part, name = name.stem()) {
    const std::string digits = name.extension().string();
    if (digits.size() < 2 || digits.find_first_not_of("0123456789", 1) != std::string::npos) {
      return false;
    }
  }
  constexpr std::array<std::string_view, 7> kOurs = {".csv",  ".fgc", ".fgp", ".json",
                                                     ".toml", ".png", ".svg"};
  return std::ranges::find(kOurs, name.extension().string()) != kOurs.end();
}

// The round a row begins with; nothing if it does not begin with a number.
std::optional<int> RoundOf(std::string_view row) {
  int round = 0;
  const auto [end, error] = std::from_chars(row.data(), row.data() + row.size(), round);
  if (error != std::errc() || end == row.data() + row.size() || *end != ',') return std::nullopt;
  return round;
}

// Header and whole rows of rounds up to `round`. The file need not be there.
Result<std::string> KeptRows(const std::string& path, std::string_view header, int round) {
  std::string kept = std::string(header) + "\n";
  if (!fs::exists(path)) return kept;
  const Result<std::string> text = ReadFile(path, kMaxRunFileBytes);
  if (!text) return text.error();
  std::string_view rest = *text;
  bool first = true;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const std::string_view row = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (std::exchange(first, false)) continue;
    const std::optional<int> of = RoundOf(row);
    if (of && *of <= round) kept += std::string(row) + "\n";
  }
  return kept;
}

// What the file held when it was marked. Somebody may have changed it since, and a run that goes on
// from there would not end with its bytes.
Result<std::string> MarkedRows(const std::string& path, const FileMark& mark, int round) {
  std::error_code code;
  std::string rows;
  if (fs::exists(path, code)) {
    Result<std::string> text = ReadFile(path, kMaxRunFileBytes);
    if (!text) return text.error();
    rows = text->substr(0, std::min<std::size_t>(text->size(), mark.bytes));
  }
  if (rows.size() == mark.bytes && Sha256Hex(rows) == mark.sha256) return rows;
  return Error{ErrorCode::kData,
               fmt::format("{}: its rows up to round {} must be those that the run wrote ({} bytes "
                           "of SHA-256 {:.16}...): it was altered or removed",
                           path, round, mark.bytes, mark.sha256)};
}

}  // namespace

GrowingTable::GrowingTable(std::string path, std::string_view text)
    : path_(std::move(path)), bytes_(text.size()) {
  hash_.Add(text);
}

Result<void> GrowingTable::Append(std::string_view rows) {
  if (auto done = AppendToFile(path_, rows); !done) return done;
  bytes_ += rows.size();
  hash_.Add(rows);
  return {};
}

FileMark GrowingTable::Mark() const {
  return {fs::path(path_).filename().string(), bytes_, hash_.Hex()};
}

Result<KeptTables> RunFiles::KeepRounds(int round, std::span<const FileMark> marks) const {
  // Round 0 of the truth is looked at before the first checkpoint: with no round done it is looked
  // at again.
  const int last = round > 0 ? round : -1;
  const std::pair<std::string, std::string_view> tables[] = {
      {Metrics(), kMetricsHeader}, {Truth(), kTruthHeader}, {Timing(), kTimingHeader}};
  std::vector<std::string> kept;
  for (const auto& [path, header] : tables) {
    const std::string name = fs::path(path).filename().string();
    const auto mark =
        std::find_if(marks.begin(), marks.end(), [&](const FileMark& m) { return m.name == name; });
    Result<std::string> rows =
        mark == marks.end() ? KeptRows(path, header, last) : MarkedRows(path, *mark, round);
    if (!rows) return rows.error();
    kept.push_back(*std::move(rows));
  }
  const auto timing = ParseTiming(kept[2], Timing());
  if (!timing) return timing.error();
  for (std::size_t index = 0; index < kept.size(); ++index) {
    auto done = WriteFileAtomically(tables[index].first, kept[index], IfExists::kReplace);
    if (!done) return done.error();
  }
  return KeptTables{
      {Metrics(), kept[0]}, {Truth(), kept[1]}, timing->empty() ? 0.0 : timing->back().seconds};
}

Result<void> RunFiles::CheckTables(int round, std::span<const FileMark> marks) const {
  for (const FileMark& mark : marks) {
    const auto rows = MarkedRows(directory_ + "/" + mark.name, mark, round);
    if (!rows) return rows.error();
  }
  return {};
}

Result<FileMark> RunFiles::MarkWithout(int round, const FileMark& mark) const {
  const std::string path = directory_ + "/" + mark.name;
  const auto rows = MarkedRows(path, mark, round);
  if (!rows) return rows.error();
  std::size_t end = 0;  // of the last row to keep
  for (std::size_t begin = 0; begin < rows->size();) {
    const std::size_t next = rows->find('\n', begin) + 1;
    if (RoundOf(std::string_view(*rows).substr(begin, next - begin)) == round) break;
    begin = end = next;
  }
  return GrowingTable(path, std::string_view(*rows).substr(0, end)).Mark();
}

std::string RunIdentityToJson(const RunIdentity& identity) {
  const nlohmann::ordered_json json = {{"format", "fedgen-run"},
                                       {"version", 1},
                                       {"seed", identity.seed},
                                       {"config", identity.config_name}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RunIdentity> ParseRunIdentity(std::string_view text, const std::string& name) {
  const auto wrong = [&](const char* problem) {
    return Error{ErrorCode::kData, fmt::format("{}: {}", name, problem)};
  };
  Json json;
  if (ParseJson(text, {}, json) || !json.is_object() ||
      json.value("format", Json()) != "fedgen-run") {
    return wrong("format: must be fedgen-run");
  }
  if (json.value("version", Json()) != 1) return wrong("version: must be 1");
  if (!json.value("seed", Json()).is_number_unsigned()) {
    return wrong("seed: must be an integer in 0..2^64 - 1");
  }
  if (!json.value("config", Json()).is_string()) return wrong("config: must be a string");
  return RunIdentity{json["seed"].get<std::uint64_t>(), json["config"].get<std::string>()};
}

Result<RunFiles> CreateRun(const std::string& directory, const RunIdentity& identity,
                           const std::string& resolved_config,
                           std::span<const FileToBegin> begin_with) {
  std::error_code code;
  const fs::path path = PlainPath(directory);
  if (path.empty()) return Error{ErrorCode::kUsage, "--out is empty"};
  const fs::file_type there = fs::symlink_status(path, code).type();
  if (there == fs::file_type::none) return IoError(directory, code);  // a name that cannot be
  if (there != fs::file_type::not_found && !IsEmptyDirectory(path.string())) {
    const bool run = fs::exists(RunFiles(directory).Identity(), code);
    return Error{ErrorCode::kExists,
                 fmt::format("{}: already exists and was left as it is{}", directory,
                             run ? fmt::format(" (--resume {} goes on with it)", directory) : "")};
  }
  if (path.has_parent_path()) {
    fs::create_directories(path.parent_path(), code);
    if (code) return IoError(path.parent_path().string(), code);
  }
  // Filled under another name, so that it is either a run or not there.
  const std::string temporary = fmt::format("{}.{}.0", path.string(), ::getpid());
  fs::create_directory(temporary, code);
  if (code) return IoError(temporary, code);
  const RunFiles filling(temporary);
  Result<void> done = {};
  for (const char* inner : {"/policies", "/figures"}) {
    fs::create_directory(temporary + inner, code);
    if (code) done = IoError(temporary + inner, code);
  }
  if (done) done = WriteFileAtomically(filling.Config(), resolved_config, IfExists::kReplace);
  for (const FileToBegin& file : begin_with) {
    if (!done) break;
    done = WriteFileAtomically(fmt::format("{}/{}", temporary, file.name), file.bytes,
                               IfExists::kReplace, file.access);
  }
  if (done) {
    done = WriteFileAtomically(filling.Identity(), RunIdentityToJson(identity), IfExists::kReplace);
  }
  if (done) {
    fs::rename(temporary, path, code);
    if (code) done = IoError(directory, code);
    // Somebody else made it in the meantime.
    if (code == std::errc::directory_not_empty || code == std::errc::file_exists) {
      done = Error{ErrorCode::kExists,
                   fmt::format("{}: already exists and was left as it is", directory)};
    }
  }
  if (!done) {
    fs::remove_all(temporary, code);
    return done.error();
  }
  return RunFiles(path.string());
}

Result<RunFiles> OpenRun(const std::string& directory) {
  std::error_code code;
  RunFiles files(PlainPath(directory).string());
  if (!fs::exists(files.Identity(), code)) {
    const bool federation = fs::exists(files.directory() + "/federation.json", code);
    return Error{ErrorCode::kIo,
                 fmt::format("{}: holds no run (no run.json){}", directory,
                             federation ? ": it is a federation of fedgen up, its learners' runs "
                                          "are learner-*/ in it, and fedgen up --resume goes on"
                                        : "")};
  }
  return files;
}

Result<VouchedTables> LoadVouchedTables(const RunFiles& files, const std::string& fingerprint) {
  std::error_code code;
  const std::string path = files.HostCheckpoint();
  if (!fs::exists(path, code)) {
    return Error{ErrorCode::kData,
                 fmt::format("{}: is missing: nothing vouches for the run's tables", path)};
  }
  const Result<std::string> bytes = ReadFile(path, kMaxCheckpointBytes);
  if (!bytes) return bytes.error();
  const Result<HostCheckpoint> checkpoint = HostFromBytes(*bytes, path);
  if (!checkpoint) return checkpoint.error();
  FEDGEN_TRY(CheckFingerprint(checkpoint->fingerprint, fingerprint, path));
  // A run that is over has no rows after those of its checkpoint.
  const bool whole = fs::exists(files.Summary(), code);
  VouchedTables tables;
  for (const auto& [table, text] :
       {std::pair(files.Metrics(), &tables.metrics), std::pair(files.Truth(), &tables.truth)}) {
    const std::string name = fs::path(table).filename().string();
    const auto mark = std::ranges::find(checkpoint->beside, name, &FileMark::name);
    if (mark == checkpoint->beside.end()) {
      return Error{ErrorCode::kData, fmt::format("{}: says nothing about {}", path, name)};
    }
    Result<std::string> rows = MarkedRows(table, *mark, checkpoint->host.round);
    if (!rows) return rows.error();
    if (whole && fs::file_size(table, code) != mark->bytes) {
      return Error{ErrorCode::kData,
                   fmt::format("{}: has rows after round {}, the last of the run: it was altered",
                               table, checkpoint->host.round)};
    }
    *text = *std::move(rows);
  }
  return tables;
}

Result<void> RemoveLeftovers(const RunFiles& files) {
  std::error_code code;
  for (const char* inner : {"", "/policies", "/figures"}) {
    fs::create_directories(files.directory() + inner, code);
    for (const auto& entry : fs::directory_iterator(files.directory() + inner, code)) {
      std::error_code ignored;
      const bool left = entry.is_regular_file(ignored) && IsLeftover(entry.path());
      if (left) fs::remove(entry.path(), ignored);
    }
    if (code) return IoError(files.directory() + inner, code);
  }
  return {};
}

Result<RunIdentity> LoadRunIdentity(const RunFiles& files) {
  const Result<std::string> text = ReadFile(files.Identity(), 1 << 20);
  if (!text) return text.error();
  return ParseRunIdentity(*text, files.Identity());
}

Result<RunLock> RunLock::Take(const RunFiles& files) {
  return Take(files.Identity(), files.directory());
}

Result<RunLock> RunLock::Take(const std::string& path, const std::string& directory) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return Error{ErrorCode::kIo, fmt::format("{}: cannot open: {}", path, std::strerror(errno))};
  }
  RunLock lock(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::kIo, fmt::format("{}: another process is training here", directory)};
  }
  return lock;
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace fedgen
