// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fedgen/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace fedgen {

// SQLite's C interface with owners and Results, for sqlite_store.cc:
//
//   const auto connection = FEDGEN_TRY(Connection::Open("cloud.db", file, SQLITE_OPEN_READWRITE));
//   Transaction transaction = FEDGEN_TRY(Transaction::BeginWriting(connection));
//   SqlStatement rows = FEDGEN_TRY(SqlStatement::Make(connection, "SELECT a FROM t WHERE b = ?",
//   b)); while (FEDGEN_TRY(rows.Step())) Use(rows.Integer(0)); FEDGEN_TRY(transaction.Commit());
//
// Errors are `path: what: reason`: kIo for trouble with the disk or with other programs, kData for
// a file that is damaged, no database, or of other tables, kExists for a broken UNIQUE, and
// kMismatch for other broken constraints.

/// A database, and the name that messages call it by.
class Connection {
 public:
  /// The file must be there: SQLite itself would make it readable to others. It must be an absolute
  /// path: "file:x" and ":memory:" have a meaning of their own to SQLite.
  static Result<Connection> Open(std::string path, const std::string& file, int flags);

  /// Statements without values and rows.
  Result<void> Run(const std::string& sql) const;

  Error Problem(ErrorCode code, std::string_view text) const;
  /// What SQLite said last.
  Error Failure(const char* doing) const;

  sqlite3* get() const { return database_.get(); }

 private:
  friend class SqlStatement;

  struct Close {
    void operator()(sqlite3* database) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Database = std::unique_ptr<sqlite3, Close>;
  using Prepared = std::unique_ptr<sqlite3_stmt, Finalize>;
  using Idle = std::map<std::string, Prepared>;  // by their text

  Connection(std::string path, Database database)
      : path_(std::move(path)), database_(std::move(database)), idle_(std::make_unique<Idle>()) {}

  std::string path_;
  Database database_;
  // Statements that are not in use: reading their text again takes longer than most of them do.
  std::unique_ptr<Idle> idle_;
};

/// Bytes for a column of bytes; a plain string is for a column of text.
struct Blob {
  const std::string& bytes;
};

/// A statement of a connection, which outlives it. Strings are bound without a copy and live until
/// its last step.
class SqlStatement {
 public:
  template <typename... Values>
  static Result<SqlStatement> Make(const Connection& connection, const std::string& sql,
                                   const Values&... values) {
    SqlStatement statement = FEDGEN_TRY(Prepare(connection, sql));
    FEDGEN_TRY(statement.Bind(values...));
    return statement;
  }

  /// Begins anew, with these values.
  template <typename... Values>
  Result<void> Bind(const Values&... values) {
    Reset();
    int parameter = 0;
    if ((BindOne(++parameter, values) && ...)) return {};
    return connection_->Failure("cannot write");
  }

  /// Whether there is one more row.
  Result<bool> Step();
  /// For what gives no rows.
  Result<void> Run();

  bool is_null(int column) const;
  std::int64_t Integer(int column) const;  // 0 for NULL
  std::optional<double> Real(int column) const;
  std::string Bytes(int column) const;  // of text or bytes, which may hold zeros; empty for NULL

  SqlStatement(SqlStatement&& other) noexcept = default;
  SqlStatement& operator=(SqlStatement&&) = delete;
  ~SqlStatement();

 private:
  SqlStatement(const Connection& connection, Connection::Prepared prepared)
      : connection_(&connection), statement_(std::move(prepared)) {}
  static Result<SqlStatement> Prepare(const Connection& connection, const std::string& sql);
  void Reset();
  bool BindOne(int parameter, std::int64_t value);
  bool BindOne(int parameter, const std::optional<double>& value);
  bool BindOne(int parameter, const std::string& text);
  bool BindOne(int parameter, const Blob& blob);
  bool BindOne(int parameter, const std::optional<Blob>& blob);

  const Connection* connection_;
  Connection::Prepared statement_;
};

/// All or nothing: without Commit() what was done since its beginning is undone.
class Transaction {
 public:
  static Result<Transaction> BeginWriting(const Connection& connection);
  /// Sees one state of the file, whatever a writer does meanwhile.
  static Result<Transaction> BeginReading(const Connection& connection);
  Transaction(Transaction&& other) noexcept;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  Result<void> Commit();

 private:
  explicit Transaction(const Connection& connection) : connection_(&connection) {}

  const Connection* connection_;
};

/// Writes all of one database over another, in one piece.
Result<void> CopyAll(const Connection& from, const Connection& to);

}  // namespace fedgen
