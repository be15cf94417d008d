// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/file_testing.h"
#include "fedgen/base/hash.h"
#include "fedgen/base/random.h"
#include "fedgen/store/store.h"
#include "fedgen/store/store_testing.h"
#include "fuzz/one_line.h"

namespace {
int fdatasync_calls = 0;
}

// What SQLite syncs by. A program's own comes before the C library's.
extern "C" int fdatasync(int descriptor) {
  ++fdatasync_calls;
  return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

namespace fedgen {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// By hand, as an older, newer or other program would.
void RunSql(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
}

int NumberFrom(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
  EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
  const int number = sqlite3_column_int(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return number;
}

TEST(SqliteStore, GivesBackEveryField) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.db");
  const std::string zeros("a\0b\0\xff\n'\"", 8);
  std::vector<StoredMessage> messages = MessagesFrom(1, 3);
  messages[0] = {1, LearnerId(7), -3, Sha256Hex(zeros), std::nullopt, 0.1, zeros, zeros, zeros};
  messages[1].learner = LearnerId::Cloud();
  messages[1].y = std::numeric_limits<double>::infinity();
  messages[1].b = std::numeric_limits<double>::denorm_min();
  messages[2].step = std::numeric_limits<int>::max();
  messages[2].kind = "round";
  messages[2].answered = 7;
  messages[2].incumbent = Sha256Hex("x");
  const RunHeader header{"Run-1_a.b", "seed = 1\n" + zeros};
  {
    const auto store = MustOpen(path);
    ExpectOk(store->Begin(header));
    ExpectOk(store->Append(header.run, {}));
    ExpectOk(store->Append(header.run, std::span(messages).first(1)));
    ExpectOk(store->Append(header.run, std::span(messages).subspan(1)));
  }
  const auto store = MustOpen(path);
  const StoredRun run = LoadRun(*store, header.run);
  EXPECT_EQ(run.header, header);
  EXPECT_EQ(run.snapshot, "");
  EXPECT_EQ(run.snapshot_sequence, 0);
  EXPECT_EQ(run.messages, messages);
  EXPECT_THAT(*store->MessagesOf(header.run, LearnerId(7)), ElementsAre(messages[0]));
  EXPECT_THAT(*store->MessagesOf(header.run, LearnerId(8)), IsEmpty());
  EXPECT_THAT(
      *store->RowsOf(header.run),
      ElementsAre(WithoutBytes(messages[0]), WithoutBytes(messages[1]), WithoutBytes(messages[2])));
}

TEST(SqliteStore, CompactLetsGoOfBytesAndKeepsRows) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.db");
  const auto store = MustOpen(path);
  ExpectOk(store->Begin({"r", ""}));
  ExpectOk(store->Compact("r", 0, "before any message"));
  ExpectOk(store->Append("r", MessagesFrom(1, 9)));
  EXPECT_EQ(LoadRun(*store).messages, MessagesFrom(1, 9));
  ExpectOk(store->Compact("r", 4, SnapshotOf(4)));
  ExpectOk(store->Compact("r", 6, SnapshotOf(6)));
  ExpectOk(store->Append("r", MessagesFrom(10, 11)));

  const StoredRun run = LoadRun(*store);
  EXPECT_EQ(run.snapshot, SnapshotOf(6));
  EXPECT_EQ(run.snapshot_sequence, 6);
  EXPECT_EQ(run.messages, MessagesFrom(7, 11));
  EXPECT_THAT(*store->MessagesOf("r", LearnerId(0)),
              ElementsAre(WithoutBytes(MessageOf(3)), WithoutBytes(MessageOf(6)), MessageOf(9)));
  EXPECT_EQ(NumberFrom(path, "SELECT count(*) FROM messages WHERE bytes IS NOT NULL"), 5);

  ExpectError(store->Compact("r", 5, "older"), ErrorCode::kMismatch, "must be after one of 6 to");
  ExpectError(store->Compact("r", 12, "unseen"), ErrorCode::kMismatch, "of 6 to 11");
  ExpectError(store->Compact("s", 0, "x"), ErrorCode::kMismatch, "there is no run");
  EXPECT_EQ(LoadRun(*store).snapshot, SnapshotOf(6));
  ExpectOk(store->Compact("r", 11, "all"));
  EXPECT_THAT(LoadRun(*store).messages, IsEmpty());
}

// Messages whose bytes a snapshot has are rows like the others, and their bytes are never written.
TEST(SqliteStore, AppendsIntoASnapshotAllOrNothing) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.db");
  const auto store = MustOpen(path);
  ExpectOk(store->Begin({"r", ""}));
  ExpectOk(store->Append("r", MessagesFrom(1, 2)));
  std::vector<StoredMessage> messages = MessagesFrom(3, 5);
  messages[1].hash.clear();
  ExpectOk(store->AppendInto("r", messages, SnapshotOf(5)));
  EXPECT_EQ(LoadRun(*store).snapshot, SnapshotOf(5));
  EXPECT_EQ(LoadRun(*store).snapshot_sequence, 5);
  EXPECT_THAT(LoadRun(*store).messages, IsEmpty());
  std::vector<StoredMessage> rows;
  for (const StoredMessage& message : MessagesFrom(1, 5)) rows.push_back(WithoutBytes(message));
  EXPECT_EQ(*store->RowsOf("r"), rows);
  EXPECT_EQ(NumberFrom(path, "SELECT count(*) FROM messages WHERE bytes IS NOT NULL"), 0);

  messages = MessagesFrom(6, 7);
  messages[1].learner = LearnerId(1);
  messages[1].step = 1;
  ExpectError(store->AppendInto("r", messages, SnapshotOf(7)), ErrorCode::kExists,
              "message 7: there is one of learner 2 and step 1");
  ExpectError(store->AppendInto("r", MessagesFrom(7, 7), SnapshotOf(7)), ErrorCode::kMismatch,
              "sequence = 7: must be 6");
  EXPECT_EQ(LoadRun(*store).snapshot, SnapshotOf(5));
  EXPECT_EQ(*store->RowsOf("r"), rows);
  ExpectOk(store->Append("r", MessagesFrom(6, 7)));
  EXPECT_EQ(LoadRun(*store).messages, MessagesFrom(6, 7));
}

TEST(SqliteStore, RefusesWhatDoesNotFollowAndChangesNothing) {
  const TemporaryDirectory directory;
  const auto store = MustOpen(directory.Path("a.db"));
  ExpectOk(store->Begin({"r", ""}));
  ExpectError(store->Append("r", MessagesFrom(2, 2)), ErrorCode::kMismatch,
              "a.db: r: sequence = 2: must be 1");
  ExpectOk(store->Append("r", MessagesFrom(1, 3)));
  const auto refused = [&](std::vector<StoredMessage> messages, ErrorCode code,
                           const std::string& text) {
    ExpectError(store->Append("r", messages), code, text);
    EXPECT_EQ(LoadRun(*store).messages, MessagesFrom(1, 3)) << text;
  };
  refused(MessagesFrom(3, 4), ErrorCode::kMismatch, "sequence = 3: must be 4");
  refused(MessagesFrom(5, 5), ErrorCode::kMismatch, "sequence = 5: must be 4");
  refused({MessageOf(4), MessageOf(6)}, ErrorCode::kMismatch, "sequence = 6: must be 5");
  refused({MessageOf(4), MessageOf(4)}, ErrorCode::kMismatch, "sequence = 4: must be 5");
  std::vector<StoredMessage> messages = MessagesFrom(4, 5);
  messages[1].learner = LearnerId(1);
  messages[1].step = 1;
  refused(messages, ErrorCode::kExists, "message 5: there is one of learner 2 and step 1");
  messages = MessagesFrom(4, 5);
  messages[1].bytes.back() ^= 1;
  refused(messages, ErrorCode::kMismatch, "message 5: its hash is not of its bytes");
  messages[1].bytes.clear();
  refused(messages, ErrorCode::kMismatch, "message 5: has no bytes");
  messages = MessagesFrom(4, 5);
  messages[1].b = std::nan("");
  refused(messages, ErrorCode::kMismatch, "message 5: y and b must be numbers");
  ExpectError(store->Append("s", MessagesFrom(1, 1)), ErrorCode::kMismatch, "s: there is no run");
  ExpectError(store->MessagesOf("s", LearnerId(0)), ErrorCode::kMismatch, "s: there is no run");
  ExpectOk(store->Append("r", MessagesFrom(4, 5)));
  EXPECT_EQ(LoadRun(*store).messages, MessagesFrom(1, 5));
}

TEST(SqliteStore, MakesTheHashThatAMessageDoesNotBring) {
  const TemporaryDirectory directory;
  const auto store = MustOpen(directory.Path("a.db"));
  ExpectOk(store->Begin({"r", ""}));
  std::vector<StoredMessage> messages = MessagesFrom(1, 2);
  for (StoredMessage& message : messages) message.hash.clear();
  ExpectOk(store->Append("r", messages));
  EXPECT_EQ(LoadRun(*store).messages, MessagesFrom(1, 2));
}

TEST(SqliteStore, KeepsRunsApart) {
  const TemporaryDirectory directory;
  const auto store = MustOpen(directory.Path("a.db"));
  for (const char* run : {"s", "r", "t"}) ExpectOk(store->Begin({run, fmt::format("of {}", run)}));
  ExpectOk(store->Append("r", MessagesFrom(1, 6)));
  ExpectOk(store->Append("s", MessagesFrom(1, 4)));
  ExpectOk(store->Compact("s", 3, SnapshotOf(3)));
  ExpectOk(store->Append("s", MessagesFrom(5, 5)));

  EXPECT_THAT(*store->Runs(),
              ElementsAre(RunHeader{"r", "of r"}, RunHeader{"s", "of s"}, RunHeader{"t", "of t"}));
  EXPECT_EQ(LoadRun(*store, "r").messages, MessagesFrom(1, 6));
  EXPECT_EQ(LoadRun(*store, "r").snapshot, "");
  EXPECT_EQ(LoadRun(*store, "s").messages, MessagesFrom(4, 5));
  EXPECT_EQ(LoadRun(*store, "s").snapshot, SnapshotOf(3));
  EXPECT_THAT(LoadRun(*store, "t").messages, IsEmpty());
  EXPECT_THAT(*store->MessagesOf("r", LearnerId(0)), ElementsAre(MessageOf(3), MessageOf(6)));
  EXPECT_THAT(*store->MessagesOf("s", LearnerId(0)), ElementsAre(WithoutBytes(MessageOf(3))));
  EXPECT_FALSE(store->Load("q")->has_value());
}

TEST(SqliteStore, BeginsARunOnce) {
  const TemporaryDirectory directory;
  const auto store = MustOpen(directory.Path("a.db"));
  ExpectOk(store->Begin({"r", "seed = 1"}));
  ExpectOk(store->Append("r", MessagesFrom(1, 2)));
  ExpectOk(store->Begin({"r", "seed = 1"}));
  EXPECT_EQ(LoadRun(*store).messages, MessagesFrom(1, 2));
  ExpectError(store->Begin({"r", "seed = 2"}), ErrorCode::kExists,
              "a.db: run = r: was begun with other settings");
  EXPECT_THAT(*store->Runs(), ElementsAre(RunHeader{"r", "seed = 1"}));
}

TEST(SqliteStore, TakesOnlyPlainNamesOfRuns) {
  const TemporaryDirectory directory;
  const auto store = MustOpen(directory.Path("a.db"));
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("r'; DROP TABLE runs; --"),
        std::string("\"r\""), std::string("a/b"), std::string("r\0", 2), std::string("\n"),
        std::string("\xc3\xa9"), std::string(65, 'a')}) {
    ExpectError(store->Begin({name, ""}), ErrorCode::kUsage, "must be 1 to 64 letters");
    EXPECT_FALSE(store->Load(name)->has_value()) << name;
    ExpectError(store->Append(name, MessagesFrom(1, 1)), ErrorCode::kMismatch, "there is no run");
    ExpectError(store->MessagesOf(name, LearnerId(0)), ErrorCode::kMismatch, "there is no run");
  }
  EXPECT_THAT(*store->Runs(), IsEmpty());
  for (const std::string& name : {std::string(64, 'Z'), std::string("az-AZ_09.")}) {
    ExpectOk(store->Begin({name, ""}));
    EXPECT_TRUE(store->Load(name)->has_value()) << name;
  }
}

// The umask of most people lets others read new files.
TEST(SqliteStore, IsReadableOnlyByItsOwner) {
  const TemporaryDirectory directory;
  const mode_t mask = ::umask(022);
  const auto expect_private = [&](const std::string& name) {
    struct stat status{};
    ASSERT_EQ(::stat(directory.Path(name).c_str(), &status), 0) << name;
    EXPECT_EQ(status.st_mode & 0777, 0600U) << name;
  };
  {
    const auto store = MustOpen(directory.Path("a.db"));
    ExpectOk(store->Begin({"r", ""}));
    ExpectOk(store->Backup(directory.Path("b.db")));
    for (const char* name : {"a.db", "a.db-wal", "a.db-shm", "a.db.lock", "b.db"}) {
      expect_private(name);
    }
  }
  // A copy that was brought from elsewhere.
  ::chmod(directory.Path("b.db").c_str(), 0644);
  const auto store = MustOpen(directory.Path("b.db"));
  ExpectOk(store->Begin({"s", ""}));
  for (const char* name : {"b.db", "b.db-wal", "b.db-shm"}) expect_private(name);
  ::umask(mask);
}

TEST(SqliteStore, SyncsBeforeItReturns) {
  const TemporaryDirectory directory;
  const auto store = MustOpen(directory.Path("a.db"));
  ExpectOk(store->Begin({"r", ""}));
  for (std::int64_t s = 1; s <= 5; ++s) {
    const int before = fdatasync_calls;
    ExpectOk(store->Append("r", MessagesFrom(s, s)));
    EXPECT_GT(fdatasync_calls, before) << s;
  }
}

TEST(SqliteStore, BacksUpWhileItGoesOn) {
  const TemporaryDirectory directory;
  const auto store = MustOpen(directory.Path("a.db"));
  ExpectOk(store->Begin({"r", "x"}));
  ExpectOk(store->Append("r", MessagesFrom(1, 9)));
  ExpectOk(store->Compact("r", 4, SnapshotOf(4)));
  ExpectOk(store->Backup(directory.Path("b.db")));
  ExpectOk(store->Append("r", MessagesFrom(10, 10)));
  EXPECT_THAT(directory.Names(),
              UnorderedElementsAre("a.db", "a.db-wal", "a.db-shm", "a.db.lock", "b.db"));
  ExpectError(store->Backup(directory.Path("b.db")), ErrorCode::kExists,
              "b.db: already exists and was left as it is");
  ExpectError(store->Backup(directory.Path("no/b.db")), ErrorCode::kIo, "no/b.db: cannot create");

  const auto copy = MustOpen(directory.Path("b.db"));
  EXPECT_EQ(LoadRun(*copy).messages, MessagesFrom(5, 9));
  EXPECT_EQ(LoadRun(*copy).snapshot, SnapshotOf(4));
  EXPECT_EQ(LoadRun(*store).messages, MessagesFrom(5, 10));
  ExpectOk(copy->Append("r", MessagesFrom(10, 11)));
}

TEST(SqliteStore, ThatNobodyHasOpenIsReadToo) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.db");
  ExpectOk(MustOpen(path)->Begin({"r", "x"}));
  const auto reader = OpenStoreForReading(UrlOf(path));
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_THAT(*(*reader)->Runs(), ElementsAre(RunHeader{"r", "x"}));
  const auto store = MustOpen(path);  // a reader does not keep an owner away
  ExpectOk(store->Append("r", MessagesFrom(1, 1)));
  EXPECT_EQ(LoadRun(**reader).messages, MessagesFrom(1, 1));
}

constexpr const char* kVersion1 = R"(
    PRAGMA application_id = 0x46644765;
    PRAGMA user_version = 1;
    CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL)
      STRICT;
    CREATE TABLE messages (run INTEGER NOT NULL REFERENCES runs (id), sequence INTEGER NOT NULL,
      learner INTEGER NOT NULL, step INTEGER NOT NULL, hash TEXT NOT NULL, y REAL, b REAL,
      verdicts BLOB NOT NULL, signature BLOB NOT NULL, bytes BLOB, PRIMARY KEY (run, sequence),
      UNIQUE (run, step, learner)) STRICT;
    INSERT INTO runs VALUES (5, 'r', 'old');
    INSERT INTO messages VALUES (5, 1, 1, 1, '%s', 0.5, NULL, x'', x'', x'616263');)";

TEST(SqliteStore, OfAnOlderSchemaMovesUp) {
  const TemporaryDirectory directory;
  std::string old = kVersion1;
  old.replace(old.find("%s"), 2, Sha256Hex("abc"));
  RunSql(directory.Path("1.db"), old);
  RunSql(directory.Path("0.db"), "PRAGMA user_version = 1; PRAGMA user_version = 0");
  std::ofstream(directory.Path("empty.db"));
  ExpectError(OpenStoreForReading(UrlOf(directory.Path("1.db"))), ErrorCode::kMismatch,
              "1.db: schema = 1: must be 3");
  for (const char* name : {"0.db", "empty.db", "1.db"}) {
    const auto store = MustOpen(directory.Path(name));
    ASSERT_TRUE(store) << name;
    ExpectOk(store->Begin({"s", ""}));
    ExpectOk(store->Append("s", MessagesFrom(1, 1)));
    ExpectOk(store->Compact("s", 1, "state"));
    EXPECT_EQ(NumberFrom(directory.Path(name), "PRAGMA user_version"), 3) << name;
  }
  const auto store = MustOpen(directory.Path("1.db"));
  EXPECT_EQ(LoadRun(*store).header, (RunHeader{"r", "old"}));
  EXPECT_THAT(LoadRun(*store).messages,
              ElementsAre(StoredMessage{1, LearnerId(1), 1, Sha256Hex("abc"), 0.5, std::nullopt, "",
                                        "", "abc"}));
}

TEST(SqliteStore, MovesUpWhollyOrNotAtAll) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.db");
  // The last step finds its table taken.
  RunSql(path, "PRAGMA application_id = 0x46644765; CREATE TABLE snapshots (x)");
  ExpectError(OpenStore(UrlOf(path)), ErrorCode::kData, "table snapshots already exists");
  EXPECT_EQ(NumberFrom(path, "SELECT count(*) FROM sqlite_schema"), 1);
  EXPECT_EQ(NumberFrom(path, "PRAGMA user_version"), 0);
}

TEST(SqliteStore, OfANewerSchemaOrAnotherProgramIsLeftAlone) {
  const TemporaryDirectory directory;
  const std::string newer = directory.Path("newer.db");
  RunSql(newer, "PRAGMA application_id = 0x46644765; PRAGMA user_version = 4");
  const std::string other = directory.Path("other.db");
  RunSql(other, "CREATE TABLE t (x)");
  const std::string text = directory.Path("text.db");
  std::ofstream(text) << "rather short";
  const std::string long_text = directory.Path("long.db");
  std::ofstream(long_text) << std::string(10'000, 'x');
  for (const auto& open : {OpenStore, OpenStoreForReading}) {
    const std::string before = *ReadFile(other, 1 << 20);
    ExpectError(open(UrlOf(newer)), ErrorCode::kMismatch,
                "newer.db: schema = 4: must be at most 3: a newer FedGen wrote it");
    ExpectError(open(UrlOf(other)), ErrorCode::kData, "but not a store of FedGen");
    EXPECT_EQ(*ReadFile(other, 1 << 20), before);
    ExpectError(open(UrlOf(text)), ErrorCode::kData, "text.db: cannot read: file is not a");
    ExpectError(open(UrlOf(long_text)), ErrorCode::kData, "file is not a database");
    ExpectError(open("postgres:x"), ErrorCode::kUsage, "postgres:x: must be sqlite:PATH");
    ExpectError(open("sqlite:"), ErrorCode::kUsage, "must be sqlite:PATH");
    ExpectError(open(UrlOf(directory.Path("no/a.db"))), ErrorCode::kIo, "a.db");
    ExpectError(open(UrlOf(directory.path())), ErrorCode::kIo, "cannot open");
  }
  // Nothing is left beside what is no store.
  for (const std::string& path : {newer, other, text, long_text, directory.path()}) {
    EXPECT_NE(::access((path + ".lock").c_str(), F_OK), 0) << path;
  }
}

// One altered bit anywhere is either seen when it is opened or read, or is in what is not used.
TEST(SqliteStore, ThatIsDamagedGivesNoWrongBytes) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.db");
  {
    const auto store = MustOpen(path);
    ExpectOk(store->Begin({"r", ""}));
    ExpectOk(store->Append("r", MessagesFrom(1, 4)));
    ExpectOk(store->Compact("r", 2, SnapshotOf(2)));
  }
  const std::string whole = *ReadFile(path, 1 << 20);
  int seen = 0;
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    const RandomBlock draw = Key(7).Block(trial);
    std::string altered = whole;
    const int at = UniformInt(draw[0], 0, static_cast<int>(whole.size()) - 1);
    altered[static_cast<std::size_t>(at)] ^= static_cast<char>(1 << draw[1] % 8);
    if (trial == 0) altered.resize(whole.size() / 2);
    const std::string copy = directory.Path(fmt::format("{}.db", trial));
    std::ofstream(copy, std::ios::binary) << altered;
    const auto store = OpenStore(UrlOf(copy));
    const auto run = store ? (*store)->Load("r") : Result<std::optional<StoredRun>>(store.error());
    if (run && *run) {
      EXPECT_EQ((*run)->snapshot, SnapshotOf(2)) << at;
      for (const StoredMessage& message : (*run)->messages) {
        EXPECT_EQ(message.bytes, MessageOf(message.sequence).bytes) << at;
      }
    } else if (!run) {
      ++seen;
      EXPECT_THAT(run.error().code, AnyOf(ErrorCode::kData, ErrorCode::kMismatch, ErrorCode::kIo));
      EXPECT_TRUE(IsOneLine(run.error().message)) << run.error().message;
      EXPECT_THAT(run.error().message, HasSubstr(copy));
    }
  }
  EXPECT_GT(seen, 20);
}

}  // namespace
}  // namespace fedgen
