// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/file_testing.h"
#include "fedgen/base/hash.h"
#include "fedgen/base/random.h"
#include "fedgen/store/store.h"
#include "fedgen/store/store_testing.h"

// What is left of a store when the disk is full or its process is killed.

namespace fedgen {
namespace {

using ::testing::SizeIs;

constexpr std::int64_t kLongestBatch = 5;

// Runs `body` in a process of its own until it is told to stop or killed.
class Child {
 public:
  // The child reports numbers by the function that it is given.
  explicit Child(const std::function<void(std::function<void(std::int64_t)>)>& body) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    EXPECT_GE(pid_, 0);
    if (pid_ == 0) {
      ::close(ends[0]);
      body([&](std::int64_t number) {
        if (::write(ends[1], &number, sizeof number) != sizeof number) ::_exit(2);
      });
      ::_exit(0);
    }
    ::close(ends[1]);
    reports_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    Kill();
    ::close(reports_);
  }

  // Nothing if it has ended. A report is one write of few bytes: there wholly or not at all.
  std::optional<std::int64_t> Report() {
    std::int64_t number = 0;
    if (::read(reports_, &number, sizeof number) != sizeof number) return std::nullopt;
    return number;
  }

  // How it ended, as of waitpid().
  int Kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status_, 0);
      pid_ = -1;
    }
    return status_;
  }

 private:
  pid_t pid_ = -1;
  int reports_ = -1;
  int status_ = 0;
};

// SQLite's log stands beside the name by which a file was opened: two names would be two logs.
TEST(SqliteStore, BelongsToOneProcessByWhicheverName) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.db");
  const std::string other = directory.Path("b.db");
  const auto store = MustOpen(path);
  ExpectOk(store->Begin({"r", ""}));
  ASSERT_EQ(::link(path.c_str(), other.c_str()), 0);
  ExpectError(OpenStore(UrlOf(other)), ErrorCode::kIo, "b.db: is in use by another process");
  EXPECT_NE(::access((other + "-wal").c_str(), F_OK), 0);
  ExpectOk(store->Append("r", MessagesFrom(1, 1)));
}

TEST(SqliteStore, BelongsToOneProcessAndIsReadByMany) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.db");
  const std::string link = directory.Path("link.db");
  std::filesystem::create_symlink(path, link);
  ExpectError(OpenStoreForReading(UrlOf(path)), ErrorCode::kIo, "a.db: cannot open");
  Child owner([&](const auto& report) {
    const auto store = MustOpen(path);
    if (!store || !store->Begin({"r", ""}) || !store->Append("r", MessagesFrom(1, 3))) return;
    report(3);
    ::pause();
  });
  ASSERT_EQ(owner.Report(), 3);
  for (const std::string& name : {path, link}) {
    ExpectError(OpenStore(UrlOf(name)), ErrorCode::kIo, ".db: is in use by another process");
  }
  {
    const auto reader = OpenStoreForReading(UrlOf(path));
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_EQ(LoadRun(**reader).messages, MessagesFrom(1, 3));
    EXPECT_THAT(*(*reader)->Runs(), SizeIs(1));
    ExpectOk((*reader)->Backup(directory.Path("b.db")));
    ExpectError((*reader)->Begin({"s", ""}), ErrorCode::kUsage, "a.db: is open for reading only");
    ExpectError((*reader)->Append("r", MessagesFrom(4, 4)), ErrorCode::kUsage, "reading only");
    ExpectError((*reader)->Compact("r", 3, "x"), ErrorCode::kUsage, "reading only");
  }
  EXPECT_TRUE(WIFSIGNALED(owner.Kill()));
  const auto store = MustOpen(path);
  ASSERT_TRUE(store);
  ExpectError(OpenStore(UrlOf(path)), ErrorCode::kIo, "is in use");
  EXPECT_EQ(LoadRun(*store).messages, MessagesFrom(1, 3));
  EXPECT_EQ(LoadRun(*MustOpen(directory.Path("b.db"))).messages, MessagesFrom(1, 3));
}

// No file of this process grows beyond so many bytes: as on a full disk.
class SizeLimit {
 public:
  explicit SizeLimit(std::uintmax_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

TEST(SqliteStore, GoesOnAfterAFullDisk) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.db");
  const auto store = MustOpen(path);
  ExpectOk(store->Begin({"r", ""}));
  ExpectOk(store->Append("r", MessagesFrom(1, 3)));
  // The disk is full after ever more of what the calls have to write.
  const auto retry_until_it_fits = [&](const std::function<Result<void>()>& call) {
    const StoredRun before = LoadRun(*store);
    const std::uintmax_t size = std::filesystem::file_size(path + "-wal");
    int failures = 0;
    for (std::uintmax_t more = 0;; more += 1500) {
      const Result<void> result = [&] {
        const SizeLimit limit(size + more);
        return call();
      }();
      if (result) break;
      ++failures;
      ExpectError(result, ErrorCode::kIo, "a.db: cannot write: ");
      ASSERT_EQ(LoadRun(*store).messages, before.messages) << more;
      ASSERT_EQ(LoadRun(*store).snapshot, before.snapshot) << more;
      if (HasFailure()) return;  // it may never fit
    }
    EXPECT_GT(failures, 8);
  };
  retry_until_it_fits([&] { return store->Append("r", MessagesFrom(4, 7)); });
  EXPECT_EQ(LoadRun(*store).messages, MessagesFrom(1, 7));
  retry_until_it_fits([&] { return store->Compact("r", 6, SnapshotOf(6)); });
  EXPECT_EQ(LoadRun(*store).messages, MessagesFrom(7, 7));
  EXPECT_EQ(LoadRun(*store).snapshot, SnapshotOf(6));

  const std::vector<std::string> names = directory.Names();
  {
    const SizeLimit limit(10'000);
    ExpectError(store->Backup(directory.Path("b.db")), ErrorCode::kIo, "b.db: cannot write: ");
  }
  EXPECT_EQ(directory.Names().size(), names.size());
  ExpectOk(store->Backup(directory.Path("b.db")));
  EXPECT_EQ(LoadRun(*MustOpen(directory.Path("b.db"))).messages, MessagesFrom(7, 7));
}

// The last message of the batch that begins with this one.
std::int64_t EndOfBatch(std::int64_t first) {
  const std::uint32_t word = Key(6).Block(static_cast<std::uint64_t>(first))[0];
  return first + UniformInt(word, 0, kLongestBatch - 1);
}

bool IsEndOfBatch(std::int64_t sequence) {
  std::int64_t end = 0;
  while (end < sequence) end = EndOfBatch(end + 1);
  return end == sequence;
}

// What a process that may be killed does: appends batch after batch, and keeps a snapshot after
// some, or with some. It reports s when the messages up to s are acknowledged, and -s for a
// snapshot after s.
void AppendForEver(const std::string& path, const std::function<void(std::int64_t)>& report) {
  const auto opened = OpenStore(UrlOf(path));
  if (!opened || !(*opened)->Begin({"r", ""})) return;
  Store& store = **opened;
  const auto run = store.Load("r");
  if (!run || !*run) return;
  std::int64_t last =
      (*run)->snapshot_sequence + static_cast<std::int64_t>((*run)->messages.size());
  while (true) {
    const std::int64_t end = EndOfBatch(last + 1);
    const std::vector<StoredMessage> batch = MessagesFrom(last + 1, end);
    const bool both = end % 3 == 0;
    if (!(both ? store.AppendInto("r", batch, SnapshotOf(end)) : store.Append("r", batch))) return;
    last = end;
    report(last);
    if (both) report(-last);
    if (both || last % 4 != 0) continue;
    if (!store.Compact("r", last, SnapshotOf(last))) return;
    report(-last);
  }
}

// What the processes before acknowledged.
struct Acknowledged {
  std::int64_t messages = 0;
  std::int64_t snapshot = 0;

  void Note(std::int64_t report) { (report > 0 ? messages : snapshot) = std::abs(report); }
};

// What may be there after a kill: all that was acknowledged, and perhaps the call under way.
void ExpectIntact(const std::string& path, const Acknowledged& acknowledged) {
  const auto store = MustOpen(path);
  ASSERT_TRUE(store);
  const auto loaded = store->Load("r");
  ASSERT_TRUE(loaded) << loaded.error().message;
  if (acknowledged.messages == 0 && !*loaded) return;
  ASSERT_TRUE(*loaded);
  const StoredRun& run = **loaded;
  const std::int64_t snapshot = run.snapshot_sequence;
  const std::int64_t last = snapshot + static_cast<std::int64_t>(run.messages.size());
  EXPECT_GE(last, acknowledged.messages);
  EXPECT_LE(last, acknowledged.messages + kLongestBatch);
  EXPECT_TRUE(IsEndOfBatch(last)) << last;
  EXPECT_GE(snapshot, acknowledged.snapshot);
  EXPECT_EQ(run.snapshot, snapshot == 0 ? "" : SnapshotOf(snapshot));
  EXPECT_EQ(run.messages, MessagesFrom(snapshot + 1, last));
  std::vector<std::int64_t> sequences;
  for (std::uint32_t learner = 0; learner < kLearners; ++learner) {
    const auto rows = store->MessagesOf("r", LearnerId(learner));
    ASSERT_TRUE(rows) << rows.error().message;
    for (const StoredMessage& message : *rows) {
      sequences.push_back(message.sequence);
      const StoredMessage expected = MessageOf(message.sequence);
      EXPECT_EQ(message, message.sequence > snapshot ? expected : WithoutBytes(expected));
    }
  }
  std::sort(sequences.begin(), sequences.end());
  ASSERT_THAT(sequences, SizeIs(static_cast<std::size_t>(last)));
  for (std::int64_t s = 1; s <= last; ++s) EXPECT_EQ(sequences[static_cast<std::size_t>(s - 1)], s);
}

TEST(SqliteStore, KeepsWhatItAcknowledgedWhenKilledAtAnyMoment) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.db");
  Acknowledged acknowledged;
  for (std::uint64_t kill = 0; kill < 40; ++kill) {
    const RandomBlock draw = Key(8).Block(kill);
    Child child([&](const auto& report) { AppendForEver(path, report); });
    const int reports = UniformInt(draw[0], 0, 12);
    for (int k = 0; k < reports; ++k) {
      const std::optional<std::int64_t> report = child.Report();
      ASSERT_TRUE(report) << "the child gave up";
      acknowledged.Note(*report);
    }
    // Some work, so that kills spread over the next calls.
    const auto work = static_cast<std::size_t>(UniformInt(draw[1], 0, 2'000'000));
    EXPECT_THAT(Sha256Hex(std::string(work, 'x')), SizeIs(64));
    ASSERT_TRUE(WIFSIGNALED(child.Kill())) << "the child gave up";
    while (const std::optional<std::int64_t> report = child.Report()) acknowledged.Note(*report);
    ExpectIntact(path, acknowledged);
    if (HasFailure()) FAIL() << "after kill " << kill;
  }
  EXPECT_GT(acknowledged.messages, 200);
  EXPECT_GT(acknowledged.snapshot, 100);
}

int writes_left = 0;

// As the kernel's, but the last one is cut in the middle and then the process is gone.
ssize_t WriteOrDie(int file, const void* bytes, std::size_t count, off64_t offset) {
  if (--writes_left == 0) {
    if (::pwrite64(file, bytes, count / 2, offset) < 0) ::_exit(3);
    ::kill(::getpid(), SIGKILL);
  }
  return ::pwrite64(file, bytes, count, offset);
}

// Goes on with the store until so many writes.
void CutWrite(const std::string& path, int writes, Acknowledged& acknowledged) {
  Child child([&](const auto& report) {
    writes_left = writes;
    sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
    vfs->xSetSystemCall(vfs, "pwrite64", reinterpret_cast<sqlite3_syscall_ptr>(&WriteOrDie));
    AppendForEver(path, report);
  });
  while (const auto report = child.Report()) acknowledged.Note(*report);
  ASSERT_TRUE(WIFSIGNALED(child.Kill())) << "the child gave up";
  ExpectIntact(path, acknowledged);
}

TEST(SqliteStore, KeepsWhatItAcknowledgedWhenAnyWriteIsCut) {
  // The making of a store, up to its first messages.
  std::int64_t most = 0;
  for (int writes = 1; writes <= 60; ++writes) {
    const TemporaryDirectory directory;
    Acknowledged acknowledged;
    CutWrite(directory.Path("a.db"), writes, acknowledged);
    if (HasFailure()) FAIL() << "at write " << writes;
    most = std::max(most, acknowledged.messages);
  }
  EXPECT_GT(most, 0);
  // Its use.
  const TemporaryDirectory directory;
  Acknowledged acknowledged;
  for (std::uint64_t cut = 0; cut < 30; ++cut) {
    CutWrite(directory.Path("a.db"), UniformInt(Key(9).Block(cut)[0], 1, 400), acknowledged);
    if (HasFailure()) FAIL() << "at cut " << cut;
  }
  EXPECT_GT(acknowledged.messages, 100);
  EXPECT_GT(acknowledged.snapshot, 50);
}

}  // namespace
}  // namespace fedgen
