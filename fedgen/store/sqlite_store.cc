// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fedgen/base/hash.h"
#include "fedgen/base/text.h"
#include "fedgen/store/sqlite.h"
#include "fedgen/store/store.h"

// One SQLite file. Write-ahead log: readers and backups do not disturb the writer. synchronous =
// FULL: a commit is on disk. Keys grow with time, so that what is new stands on few pages. Beside
// it, PATH.lock says that a process has the store as its own; it stays when the store is closed,
// since removing it could take it from under the next owner.

namespace fedgen {
namespace {

// Entry v moves a file from version v to v + 1. Once released, an entry never changes.
constexpr const char* kMigrations[] = {
    R"(CREATE TABLE runs (
         id INTEGER PRIMARY KEY,
         name TEXT NOT NULL UNIQUE,
         settings TEXT NOT NULL
       ) STRICT;
       CREATE TABLE messages (
         run INTEGER NOT NULL REFERENCES runs (id),
         sequence INTEGER NOT NULL CHECK (sequence >= 1),
         learner INTEGER NOT NULL,
         step INTEGER NOT NULL,
         hash TEXT NOT NULL,
         y REAL,
         b REAL,
         verdicts BLOB NOT NULL,
         signature BLOB NOT NULL,
         bytes BLOB,
         PRIMARY KEY (run, sequence),
         UNIQUE (run, step, learner)
       ) STRICT;)",
    R"(CREATE TABLE snapshots (
         run INTEGER PRIMARY KEY REFERENCES runs (id),
         sequence INTEGER NOT NULL CHECK (sequence >= 0),
         hash TEXT NOT NULL,
         state BLOB NOT NULL
       ) STRICT;)",
    R"(ALTER TABLE messages ADD COLUMN kind TEXT NOT NULL DEFAULT '';
       ALTER TABLE messages ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE messages ADD COLUMN incumbent TEXT NOT NULL DEFAULT '';)",
};
constexpr int kSchema = std::size(kMigrations);
constexpr int kApplicationId = 0x46644765;  // "FdGe": tells a store from other SQLite files
constexpr mode_t kOwnerOnly = 0600;

Error IoError(const std::string& path, const char* doing) {
  return {ErrorCode::kIo, fmt::format("{}: {}: {}", path, doing, std::strerror(errno))};
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int value() const { return value_; }
  bool is_open() const { return value_ >= 0; }

 private:
  int value_;
};

// That a process has a store as its own: by a file beside it, and by the store itself, which may
// have other names. (SQLite's own locks are of another kind.)
struct StoreLock {
  Descriptor beside;
  Descriptor itself;
};

Result<void> Sync(const std::string& path, const std::string& what, int flags) {
  const Descriptor file(::open(what.c_str(), flags | O_RDONLY | O_CLOEXEC));
  if (!file.is_open() || ::fsync(file.value()) != 0) return IoError(path, "cannot sync");
  return {};
}

// A name in a directory survives a power cut only if the directory is synced too.
Result<void> SyncDirectoryOf(const std::string& path, const std::string& file) {
  return Sync(path, std::filesystem::path(file).parent_path().string(), O_DIRECTORY);
}

// The schema of a file that is a store or may become one.
Result<int> SchemaOf(const Connection& connection) {
  SqlStatement statement = FEDGEN_TRY(
      SqlStatement::Make(connection,
                         "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
                         " FROM pragma_application_id, pragma_user_version"));
  FEDGEN_TRY(statement.Step());
  const std::int64_t application = statement.Integer(0);
  const std::int64_t version = statement.Integer(1);
  const bool is_new = application == 0 && version == 0 && statement.Integer(2) == 0;
  if (version < 0 || (application != kApplicationId && !is_new)) {
    return connection.Problem(ErrorCode::kData, "is a database, but not a store of FedGen");
  }
  if (version > kSchema) {
    return connection.Problem(
        ErrorCode::kMismatch,
        fmt::format("schema = {}: must be at most {}: a newer FedGen wrote it", version, kSchema));
  }
  return static_cast<int>(version);
}

Result<void> MoveUp(const Connection& connection) {
  Transaction transaction = FEDGEN_TRY(Transaction::BeginWriting(connection));
  const int version = FEDGEN_TRY(SchemaOf(connection));
  if (version == kSchema) return {};
  for (int v = version; v < kSchema; ++v) FEDGEN_TRY(connection.Run(kMigrations[v]));
  FEDGEN_TRY(connection.Run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                        kApplicationId, kSchema)));
  return transaction.Commit();
}

// Better now than in the middle of a run.
Result<void> CheckDamage(const Connection& connection) {
  SqlStatement statement = FEDGEN_TRY(SqlStatement::Make(connection, "PRAGMA quick_check(1)"));
  FEDGEN_TRY(statement.Step());
  const std::string found = statement.Bytes(0);
  if (found == "ok") return {};
  return connection.Problem(ErrorCode::kData, "is damaged: " + Printable(found, 200));
}

Result<void> UseWriteAheadLog(const Connection& connection) {
  SqlStatement statement = FEDGEN_TRY(SqlStatement::Make(connection, "PRAGMA journal_mode = WAL"));
  FEDGEN_TRY(statement.Step());
  if (statement.Bytes(0) == "wal") return {};
  return connection.Problem(ErrorCode::kIo, "cannot keep a write-ahead log on this file system");
}

// What all rows of messages are read by, in the order of ReadMessage().
constexpr const char* kSelectMessages =
    "SELECT sequence, learner, step, hash, y, b, verdicts, signature, kind, answered, incumbent,"
    " bytes FROM messages WHERE run = ? AND ";
constexpr const char* kSelectRows =
    "SELECT sequence, learner, step, hash, y, b, verdicts, signature, kind, answered, incumbent,"
    " NULL FROM messages WHERE run = ? ORDER BY sequence";

class SqliteStore : public Store {
 public:
  // The lock of a store that is open for reading only is none.
  SqliteStore(std::optional<StoreLock> lock, Connection connection)
      : lock_(std::move(lock)), connection_(std::move(connection)) {}

  Result<void> Begin(const RunHeader& header) override {
    FEDGEN_TRY(CheckWritable());
    Reach("begin: before it");
    if (!IsRunName(header.run)) {
      return connection_.Problem(
          ErrorCode::kUsage,
          fmt::format("run = {}: must be 1 to 64 letters, digits, '-', '_' and '.'",
                      Printable(header.run, 80)));
    }
    Transaction transaction = FEDGEN_TRY(Transaction::BeginWriting(connection_));
    SqlStatement known = FEDGEN_TRY(
        SqlStatement::Make(connection_, "SELECT settings FROM runs WHERE name = ?", header.run));
    if (FEDGEN_TRY(known.Step())) {
      if (known.Bytes(0) == header.settings) return {};
      return connection_.Problem(
          ErrorCode::kExists, fmt::format("run = {}: was begun with other settings", header.run));
    }
    SqlStatement insert = FEDGEN_TRY(
        SqlStatement::Make(connection_, "INSERT INTO runs (name, settings) VALUES (?, ?)",
                           header.run, header.settings));
    FEDGEN_TRY(insert.Run());
    Reach("begin: before its commit");
    FEDGEN_TRY(transaction.Commit());
    Reach("begin: after it");
    return {};
  }

  Result<std::vector<RunHeader>> Runs() override {
    SqlStatement rows = FEDGEN_TRY(
        SqlStatement::Make(connection_, "SELECT name, settings FROM runs ORDER BY name"));
    std::vector<RunHeader> runs;
    while (FEDGEN_TRY(rows.Step())) runs.push_back({rows.Bytes(0), rows.Bytes(1)});
    return runs;
  }

  Result<std::optional<StoredRun>> Load(const std::string& run) override {
    const Transaction transaction = FEDGEN_TRY(Transaction::BeginReading(connection_));
    SqlStatement header = FEDGEN_TRY(
        SqlStatement::Make(connection_, "SELECT id, settings FROM runs WHERE name = ?", run));
    if (!FEDGEN_TRY(header.Step())) return std::optional<StoredRun>();
    const std::int64_t id = header.Integer(0);
    StoredRun stored{{run, header.Bytes(1)}, "", 0, {}};
    SqlStatement snapshot = FEDGEN_TRY(SqlStatement::Make(
        connection_, "SELECT sequence, hash, state FROM snapshots WHERE run = ?", id));
    if (FEDGEN_TRY(snapshot.Step())) {
      stored.snapshot_sequence = snapshot.Integer(0);
      stored.snapshot = snapshot.Bytes(2);
      if (Sha256Hex(stored.snapshot) != snapshot.Bytes(1)) {
        return Damage(run, "its snapshot is not what was written");
      }
    }
    SqlStatement rows = FEDGEN_TRY(SqlStatement::Make(
        connection_, std::string(kSelectMessages) + "sequence > ? ORDER BY sequence", id,
        stored.snapshot_sequence));
    stored.messages = FEDGEN_TRY(ReadMessages(run, rows));
    std::int64_t expected = stored.snapshot_sequence;
    for (const StoredMessage& message : stored.messages) {
      if (message.sequence != ++expected || message.bytes.empty()) {
        return Damage(run, fmt::format("message {} is missing", expected));
      }
    }
    return std::optional<StoredRun>(std::move(stored));
  }

  Result<void> Append(const std::string& run, std::span<const StoredMessage> messages) override {
    return Write("append", run, messages, 0, nullptr);
  }

  Result<void> Compact(const std::string& run, std::int64_t sequence,
                       const std::string& snapshot) override {
    return Write("compact", run, {}, sequence, &snapshot);
  }

  Result<void> AppendInto(const std::string& run, std::span<const StoredMessage> messages,
                          const std::string& snapshot) override {
    FEDGEN_CHECK(!messages.empty(), "no messages of run {}", run);
    return Write("append into", run, messages, messages.back().sequence, &snapshot);
  }

  Result<std::vector<StoredMessage>> MessagesOf(const std::string& run,
                                                LearnerId learner) override {
    const Transaction transaction = FEDGEN_TRY(Transaction::BeginReading(connection_));
    const std::int64_t id = FEDGEN_TRY(IdOf(run));
    SqlStatement rows = FEDGEN_TRY(SqlStatement::Make(
        connection_, std::string(kSelectMessages) + "learner = ? ORDER BY sequence", id,
        std::int64_t{learner.index()}));
    return ReadMessages(run, rows);
  }

  Result<std::vector<StoredMessage>> RowsOf(const std::string& run) override {
    const Transaction transaction = FEDGEN_TRY(Transaction::BeginReading(connection_));
    const std::int64_t id = FEDGEN_TRY(IdOf(run));
    SqlStatement rows = FEDGEN_TRY(SqlStatement::Make(connection_, kSelectRows, id));
    return ReadMessages(run, rows);
  }

  Result<void> Backup(const std::string& path) override;

 private:
  Result<void> CheckWritable() const {
    if (lock_) return {};
    return connection_.Problem(ErrorCode::kUsage, "is open for reading only");
  }

  Error Mismatch(const std::string& run, std::string_view text) const {
    return connection_.Problem(ErrorCode::kMismatch,
                               fmt::format("{}: {}", Printable(run, 80), text));
  }
  Error Damage(const std::string& run, std::string_view text) const {
    return connection_.Problem(ErrorCode::kData, fmt::format("{}: is damaged: {}", run, text));
  }

  // One transaction: messages, and a snapshot of the state after message `sequence` if there is
  // one.
  Result<void> Write(const char* what, const std::string& run,
                     std::span<const StoredMessage> messages, std::int64_t sequence,
                     const std::string* snapshot) {
    FEDGEN_TRY(CheckWritable());
    Reach(fmt::format("{}: before it", what));
    for (const StoredMessage& message : messages) FEDGEN_TRY(CheckMessage(run, message));
    Transaction transaction = FEDGEN_TRY(Transaction::BeginWriting(connection_));
    const std::int64_t id = FEDGEN_TRY(IdOf(run));
    const std::int64_t before = FEDGEN_TRY(LastOf(id));
    std::int64_t last = before;
    FEDGEN_TRY(Insert(run, id, messages, snapshot == nullptr, last));
    if (snapshot != nullptr) {
      const std::int64_t first = FEDGEN_TRY(KeepSnapshot(run, id, sequence, last, *snapshot));
      FEDGEN_TRY(LetGo(id, first, std::min(sequence, before)));
    }
    Reach(fmt::format("{}: before its commit", what));
    FEDGEN_TRY(transaction.Commit());
    Reach(fmt::format("{}: after it", what));
    return {};
  }

  // Messages after the last, which moves on.
  Result<void> Insert(const std::string& run, std::int64_t id,
                      std::span<const StoredMessage> messages, bool with_bytes,
                      std::int64_t& last) {
    if (messages.empty()) return {};
    SqlStatement insert = FEDGEN_TRY(SqlStatement::Make(
        connection_,
        "INSERT INTO messages (run, sequence, learner, step, hash, y, b, verdicts, signature,"
        " bytes, kind, answered, incumbent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    for (const StoredMessage& m : messages) {
      if (m.sequence != last + 1) {
        return Mismatch(run, fmt::format("sequence = {}: must be {}", m.sequence, last + 1));
      }
      const std::string hash = m.hash.empty() ? Sha256Hex(m.bytes) : m.hash;
      std::optional<Blob> bytes;
      if (with_bytes) bytes.emplace(Blob{m.bytes});
      FEDGEN_TRY(insert.Bind(id, m.sequence, std::int64_t{m.learner.index()}, std::int64_t{m.step},
                             hash, m.y, m.b, Blob{m.verdicts}, Blob{m.signature}, bytes, m.kind,
                             std::int64_t{m.answered}, m.incumbent));
      if (Result<void> inserted = insert.Run(); !inserted) {
        if (inserted.error().code != ErrorCode::kExists) return inserted;
        return connection_.Problem(
            ErrorCode::kExists,
            fmt::format("{}: message {}: there is one of learner {} and step {}", run, m.sequence,
                        m.learner.name(), m.step));
      }
      last = m.sequence;
    }
    return {};
  }

  // Instead of the one before it; returns after which message that was.
  Result<std::int64_t> KeepSnapshot(const std::string& run, std::int64_t id, std::int64_t sequence,
                                    std::int64_t last, const std::string& snapshot) {
    FEDGEN_CHECK(!snapshot.empty(), "an empty snapshot of run {}", run);
    const std::int64_t first = FEDGEN_TRY(SnapshotOf(id));
    if (sequence < first || sequence > last) {
      return Mismatch(run, fmt::format("snapshot after message {}: must be after one of {} to {}",
                                       sequence, first, last));
    }
    const std::string hash = Sha256Hex(snapshot);
    SqlStatement keep = FEDGEN_TRY(SqlStatement::Make(
        connection_,
        "INSERT OR REPLACE INTO snapshots (run, sequence, hash, state) VALUES (?, ?, ?, ?)", id,
        sequence, hash, Blob{snapshot}));
    FEDGEN_TRY(keep.Run());
    return first;
  }

  // Of the bytes of messages after the first up to the last. Those before have none.
  Result<void> LetGo(std::int64_t id, std::int64_t first, std::int64_t last) {
    SqlStatement let_go = FEDGEN_TRY(SqlStatement::Make(
        connection_,
        "UPDATE messages SET bytes = NULL WHERE run = ? AND sequence > ? AND sequence <= ?", id,
        first, last));
    return let_go.Run();
  }

  // What would not come back as it is, or could not be told from damage.
  Result<void> CheckMessage(const std::string& run, const StoredMessage& message) const {
    const auto refused = [&](std::string_view rule) {
      return Mismatch(run, fmt::format("message {}: {}", message.sequence, rule));
    };
    if (message.bytes.empty()) return refused("has no bytes");
    if (!message.hash.empty() && message.hash != Sha256Hex(message.bytes)) {
      return refused("its hash is not of its bytes");
    }
    for (const std::optional<double>& number : {message.y, message.b}) {
      if (number && std::isnan(*number)) return refused("y and b must be numbers");
    }
    return {};
  }

  Result<std::int64_t> IdOf(const std::string& run) const {
    SqlStatement statement =
        FEDGEN_TRY(SqlStatement::Make(connection_, "SELECT id FROM runs WHERE name = ?", run));
    if (FEDGEN_TRY(statement.Step())) return statement.Integer(0);
    return Mismatch(run, "there is no run of this name");
  }

  Result<std::int64_t> LastOf(std::int64_t id) const {
    SqlStatement statement = FEDGEN_TRY(
        SqlStatement::Make(connection_, "SELECT max(sequence) FROM messages WHERE run = ?", id));
    FEDGEN_TRY(statement.Step());
    return statement.Integer(0);  // 0 for none
  }

  Result<std::int64_t> SnapshotOf(std::int64_t id) const {
    SqlStatement statement = FEDGEN_TRY(
        SqlStatement::Make(connection_, "SELECT max(sequence) FROM snapshots WHERE run = ?", id));
    FEDGEN_TRY(statement.Step());
    return statement.Integer(0);  // 0 for none
  }

  Result<std::vector<StoredMessage>> ReadMessages(const std::string& run,
                                                  SqlStatement& rows) const {
    std::vector<StoredMessage> messages;
    while (FEDGEN_TRY(rows.Step())) {
      const std::int64_t learner = rows.Integer(1);
      const std::int64_t step = rows.Integer(2);
      const std::int64_t answered = rows.Integer(9);
      if (learner < 0 || learner > std::numeric_limits<std::uint32_t>::max() ||
          step < std::numeric_limits<int>::min() || step > std::numeric_limits<int>::max() ||
          answered < 0 || answered > std::numeric_limits<int>::max()) {
        return Damage(run, fmt::format("message {} is of no learner or step", rows.Integer(0)));
      }
      messages.push_back({rows.Integer(0), LearnerId(static_cast<std::uint32_t>(learner)),
                          static_cast<int>(step), rows.Bytes(3), rows.Real(4), rows.Real(5),
                          rows.Bytes(6), rows.Bytes(7), rows.Bytes(11), rows.Bytes(8),
                          static_cast<int>(answered), rows.Bytes(10)});
      const StoredMessage& message = messages.back();
      if (!rows.is_null(11) && Sha256Hex(message.bytes) != message.hash) {
        return Damage(run, fmt::format("message {} is not what was written", message.sequence));
      }
    }
    return messages;
  }

  std::optional<StoreLock> lock_;  // released last
  Connection connection_;
};

// A file that is being made beside its final place; gone unless it got there.
struct TemporaryFile {
  std::string name;

  explicit TemporaryFile(std::string named) : name(std::move(named)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    ::unlink(name.c_str());
    ::unlink((name + "-journal").c_str());
  }
};

Result<void> SqliteStore::Backup(const std::string& path) {
  const Error exists{ErrorCode::kExists,
                     fmt::format("{}: already exists and was left as it is", path)};
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) return exists;
  std::error_code code;
  const std::string file = std::filesystem::absolute(path, code).string();
  std::string name = file + ".XXXXXX";
  {
    const Descriptor made(::mkostemp(name.data(), O_CLOEXEC));  // readable only by its owner
    if (!made.is_open()) return IoError(path, "cannot create");
  }
  const TemporaryFile temporary(name);
  {
    const Connection copy = FEDGEN_TRY(Connection::Open(path, name, SQLITE_OPEN_READWRITE));
    FEDGEN_TRY(CopyAll(connection_, copy));
    // One file, and nothing beside it when it is looked at; whoever serves it has a log again.
    FEDGEN_TRY(copy.Run("PRAGMA journal_mode = DELETE"));
  }
  FEDGEN_TRY(Sync(path, name, 0));
  // Unlike a rename, a link leaves alone what appeared there meanwhile.
  if (::link(name.c_str(), file.c_str()) != 0) {
    return errno == EEXIST ? exists : IoError(path, "cannot create");
  }
  return SyncDirectoryOf(path, file);
}

// The path of a URL as it is written, and as all who open the file agree on, so that they lock the
// same name. Being absolute, it has no meaning of its own to SQLite, as "file:x" has.
struct Place {
  std::string path;
  std::string file;
};

Result<Place> PlaceOf(const std::string& url) {
  constexpr std::string_view kScheme = "sqlite:";
  if (!url.starts_with(kScheme) || url.size() == kScheme.size() ||
      url.find('\0') != std::string::npos) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--store = {}: must be sqlite:PATH", Printable(url, 80))};
  }
  const std::string path = url.substr(kScheme.size());
  std::error_code code;
  std::filesystem::path file = std::filesystem::absolute(path, code);
  if (!code) file = std::filesystem::weakly_canonical(file, code);
  if (code) {
    return Error{ErrorCode::kIo, fmt::format("{}: cannot open: {}", path, code.message())};
  }
  return Place{path, file.string()};
}

Result<Descriptor> Locked(const Place& place, Descriptor file) {
  if (::flock(file.value(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK) return IoError(place.path, "cannot lock");
  return Error{ErrorCode::kIo, fmt::format("{}: is in use by another process", place.path)};
}

std::string LockOf(const Place& place) { return place.file + ".lock"; }

Result<Descriptor> Lock(const Place& place) {
  const std::string name = LockOf(place);
  Descriptor lock(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kOwnerOnly));
  if (!lock.is_open()) return IoError(place.path + ".lock", "cannot open");
  return Locked(place, std::move(lock));
}

// Only by who has the lock beside it: closing the file would release the locks that SQLite holds on
// it in this process.
Result<Descriptor> LockItself(const Place& place) {
  Descriptor file(::open(place.file.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open()) return IoError(place.path, "cannot open");
  return Locked(place, std::move(file));
}

// An existing file is not even opened: closing it again would release the locks that SQLite holds
// on it in this process.
Result<void> MakeIfMissing(const Place& place) {
  const Descriptor made(
      ::open(place.file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnly));
  if (made.is_open()) return SyncDirectoryOf(place.path, place.file);
  if (errno != EEXIST) return IoError(place.path, "cannot create");
  return {};
}

// SQLite gives its log the rights of the file; those of a copy brought from elsewhere may be wider.
Result<void> LetOnlyOwnerRead(const Place& place) {
  for (const char* suffix : {"", "-wal", "-shm"}) {
    if (::chmod((place.file + suffix).c_str(), kOwnerOnly) != 0 && errno != ENOENT) {
      return IoError(place.path + suffix, "cannot make readable only by its owner");
    }
  }
  return {};
}

// A store that is this process's own.
struct OwnStore {
  StoreLock lock;
  Connection connection;  // closed first
};

Result<OwnStore> OpenOrMake(const Place& place, Descriptor beside) {
  FEDGEN_TRY(MakeIfMissing(place));
  StoreLock lock{std::move(beside), FEDGEN_TRY(LockItself(place))};
  Connection connection =
      FEDGEN_TRY(Connection::Open(place.path, place.file, SQLITE_OPEN_READWRITE));
  FEDGEN_TRY(SchemaOf(connection));  // before anything is changed: the file may be another's
  return OwnStore{std::move(lock), std::move(connection)};
}

}  // namespace

bool IsRunName(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_allowed);
}

Result<std::unique_ptr<Store>> OpenStore(const std::string& url) {
  const Place place = FEDGEN_TRY(PlaceOf(url));
  std::error_code code;
  const bool had_lock = std::filesystem::exists(LockOf(place), code);
  Result<OwnStore> opened = OpenOrMake(place, FEDGEN_TRY(Lock(place)));
  if (!opened) {
    if (!had_lock) ::unlink(LockOf(place).c_str());  // what is no store gets none
    return opened.error();
  }
  OwnStore own = *std::move(opened);
  const Connection& connection = own.connection;
  FEDGEN_TRY(LetOnlyOwnerRead(place));
  FEDGEN_TRY(UseWriteAheadLog(connection));
  // Debian's SQLite writes zeros over what is let go; FAST: not where that is one more write.
  FEDGEN_TRY(connection.Run(
      "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"
      " PRAGMA secure_delete = FAST"));
  FEDGEN_TRY(MoveUp(connection));
  FEDGEN_TRY(CheckDamage(connection));
  return std::unique_ptr<Store>(
      std::make_unique<SqliteStore>(std::move(own.lock), std::move(own.connection)));
}

Result<std::unique_ptr<Store>> OpenStoreForReading(const std::string& url) {
  const Place place = FEDGEN_TRY(PlaceOf(url));
  Connection connection =
      FEDGEN_TRY(Connection::Open(place.path, place.file, SQLITE_OPEN_READONLY));
  const int version = FEDGEN_TRY(SchemaOf(connection));
  if (version != kSchema) {
    return connection.Problem(
        ErrorCode::kMismatch,
        fmt::format("schema = {}: must be {}: its owner moves it up", version, kSchema));
  }
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(std::nullopt, std::move(connection)));
}

}  // namespace fedgen
