// SPDX-License-Identifier: Apache-2.0
#include "fedgen/store/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstring>
#include <utility>

#include "fedgen/base/text.h"

namespace fedgen {
namespace {

constexpr int kBusyMilliseconds = 10'000;  // another process may be recovering or copying the log
constexpr std::size_t kLongestReason = 200;

ErrorCode CodeOf(int extended) {
  if (extended == SQLITE_CONSTRAINT_UNIQUE) return ErrorCode::kExists;
  switch (extended & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // our statements are right, so its tables are not
      return ErrorCode::kData;
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
      return ErrorCode::kMismatch;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

Result<Connection> Connection::Open(std::string path, const std::string& file, int flags) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &opened, flags | SQLITE_OPEN_EXRESCODE, nullptr);
  Connection connection(std::move(path), Database(opened));
  if (code != SQLITE_OK) return connection.Failure("cannot open");
  sqlite3_busy_timeout(opened, kBusyMilliseconds);
  return connection;
}

void Connection::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Result<void> Connection::Run(const std::string& sql) const {
  const int code = sqlite3_exec(get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return Failure("cannot write");
  return {};
}

Error Connection::Problem(ErrorCode code, std::string_view text) const {
  return {code, fmt::format("{}: {}", path_, text)};
}

Error Connection::Failure(const char* doing) const {
  const int extended = get() == nullptr ? SQLITE_NOMEM : sqlite3_extended_errcode(get());
  const char* text = get() == nullptr ? sqlite3_errstr(extended) : sqlite3_errmsg(get());
  std::string reason = Printable(text, kLongestReason);
  const int code = extended & 0xff;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) reason = "is in use by another program";
  if (code == SQLITE_IOERR || code == SQLITE_CANTOPEN) {
    const int cause = sqlite3_system_errno(get());
    if (cause != 0) reason += fmt::format(" ({})", std::strerror(cause));
  }
  return Problem(CodeOf(extended), fmt::format("{}: {}", doing, reason));
}

void Connection::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Result<SqlStatement> SqlStatement::Prepare(const Connection& connection, const std::string& sql) {
  if (auto idle = connection.idle_->extract(sql)) {
    return SqlStatement(connection, std::move(idle.mapped()));
  }
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(connection.get(), sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK) {
    return connection.Failure("cannot read");
  }
  return SqlStatement(connection, Connection::Prepared(prepared));
}

// Back to those that are not in use; one of each text is enough.
SqlStatement::~SqlStatement() {
  if (statement_ == nullptr) return;
  Reset();
  sqlite3_clear_bindings(statement_.get());
  const char* const text = sqlite3_sql(statement_.get());
  connection_->idle_->try_emplace(text, std::move(statement_));
}

Result<bool> SqlStatement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const bool reads = sqlite3_stmt_readonly(statement_.get()) != 0;
  return connection_->Failure(reads ? "cannot read" : "cannot write");
}

Result<void> SqlStatement::Run() {
  FEDGEN_TRY(Step());
  return {};
}

void SqlStatement::Reset() { sqlite3_reset(statement_.get()); }

bool SqlStatement::BindOne(int parameter, std::int64_t value) {
  return sqlite3_bind_int64(statement_.get(), parameter, value) == SQLITE_OK;
}

bool SqlStatement::BindOne(int parameter, const std::optional<double>& value) {
  const int code = value ? sqlite3_bind_double(statement_.get(), parameter, *value)
                         : sqlite3_bind_null(statement_.get(), parameter);
  return code == SQLITE_OK;
}

bool SqlStatement::BindOne(int parameter, const std::string& text) {
  return sqlite3_bind_text64(statement_.get(), parameter, text.data(), text.size(), nullptr,
                             SQLITE_UTF8) == SQLITE_OK;
}

bool SqlStatement::BindOne(int parameter, const std::optional<Blob>& blob) {
  if (blob) return BindOne(parameter, *blob);
  return sqlite3_bind_null(statement_.get(), parameter) == SQLITE_OK;
}

bool SqlStatement::BindOne(int parameter, const Blob& blob) {
  return sqlite3_bind_blob64(statement_.get(), parameter, blob.bytes.data(), blob.bytes.size(),
                             nullptr) == SQLITE_OK;
}

bool SqlStatement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t SqlStatement::Integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::optional<double> SqlStatement::Real(int column) const {
  if (is_null(column)) return std::nullopt;
  return sqlite3_column_double(statement_.get(), column);
}

std::string SqlStatement::Bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (size == 0) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

Result<Transaction> Transaction::BeginWriting(const Connection& connection) {
  // At once, not at the first write: what it reads before it writes is still so then.
  SqlStatement begin = FEDGEN_TRY(SqlStatement::Make(connection, "BEGIN IMMEDIATE"));
  FEDGEN_TRY(begin.Run());
  return Transaction(connection);
}

Result<Transaction> Transaction::BeginReading(const Connection& connection) {
  FEDGEN_TRY(connection.Run("BEGIN"));
  return Transaction(connection);
}

Transaction::Transaction(Transaction&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)) {}

Transaction::~Transaction() {
  // After some failures, such as a full disk, SQLite has gone back by itself.
  if (connection_ != nullptr && sqlite3_get_autocommit(connection_->get()) == 0) {
    sqlite3_exec(connection_->get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

Result<void> Transaction::Commit() {
  SqlStatement commit = FEDGEN_TRY(SqlStatement::Make(*connection_, "COMMIT"));
  // To SQLite it is no statement that writes.
  if (!commit.Run()) return connection_->Failure("cannot write");
  return {};
}

Result<void> CopyAll(const Connection& from, const Connection& to) {
  sqlite3_backup* copying = sqlite3_backup_init(to.get(), "main", from.get(), "main");
  if (copying == nullptr) return to.Failure("cannot write");
  const int stepped = sqlite3_backup_step(copying, -1);
  if (sqlite3_backup_finish(copying) != SQLITE_OK) return to.Failure("cannot write");
  if (stepped == SQLITE_DONE) return {};
  return to.Problem(ErrorCode::kIo, "cannot write: is in use by another program");
}

}  // namespace fedgen
