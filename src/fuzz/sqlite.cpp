#include "fuzz/sqlite.h"

#include <sqlite3.h>

#include "galvani/base/error.h"

namespace galvani {

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v3(database.handle(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                &statement, nullptr);
  statement_.reset(statement);
  if (code != SQLITE_OK) database.failed(code);
}

bool Statement::step() {
  int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  sqlite3_reset(statement_.get());
  database_->failed(code);
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
double Statement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}
std::string Statement::text(int column) const {
  return std::string(blob(column));
}
std::string_view Statement::blob(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes == nullptr ? std::string_view() : std::string_view(static_cast<const char*>(bytes), size);
}

void Statement::set(int index, std::int64_t value) {
  if (int code = sqlite3_bind_int64(statement_.get(), index + 1, value); code != SQLITE_OK) database_->failed(code);
}
void Statement::set(int index, const std::optional<std::int64_t>& value) {
  if (value) {
    set(index, *value);
  } else if (int code = sqlite3_bind_null(statement_.get(), index + 1); code != SQLITE_OK) {
    database_->failed(code);
  }
}
void Statement::set(int index, double value) {
  if (int code = sqlite3_bind_double(statement_.get(), index + 1, value); code != SQLITE_OK) database_->failed(code);
}
void Statement::set(int index, const std::string& value) {
  int code =
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): the library's own macro
      sqlite3_bind_text64(statement_.get(), index + 1, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) database_->failed(code);
}
void Statement::set(int index, const Blob& value) {
  int code = sqlite3_bind_blob64(statement_.get(), index + 1, value.bytes.data(), value.bytes.size(), SQLITE_STATIC);
  if (code != SQLITE_OK) database_->failed(code);
}

void Database::Close::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

Database::Database(const std::filesystem::path& path, Mode mode) : name_(path.string()) {
  auto open = [&](const std::string& name, int flags) {
    sqlite3* handle = nullptr;
    int code = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
    handle_.reset(handle);
    if (code != SQLITE_OK) return code;
    sqlite3_extended_result_codes(handle, 1);
    sqlite3_busy_timeout(handle, 10000);
    // Opening reads nothing yet.
    return sqlite3_exec(handle, "PRAGMA schema_version", nullptr, nullptr, nullptr);
  };
  if (mode == Mode::write) {
    int code = open(name_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (code != SQLITE_OK) failed(code);
    return;
  }
  auto open_still = [&] {
    std::string escaped;
    for (char c : std::filesystem::absolute(path).string()) {
      if (c == '%' || c == '?' || c == '#') {
        escaped += fmt::format("%{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
      } else {
        escaped += c;
      }
    }
    return open("file:" + escaped + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  };
  int code = mode == Mode::still ? open_still() : open(name_, SQLITE_OPEN_READONLY);
  bool unreadable = code != SQLITE_OK && (code & 0xff) != SQLITE_CORRUPT && (code & 0xff) != SQLITE_NOTADB;
  // On a read-only medium SQLite cannot make the files that it shares with writers; there are no writers either.
  if (mode == Mode::read && unreadable) code = open_still();
  if (code != SQLITE_OK) failed(code);
}

void Database::execute(const std::string& sql) {
  int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) failed(code);
}

void Database::failed(int code) const {
  std::string reason = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      bad_input("{}: is damaged or not a campaign's store: {}", name_, reason);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      fail(ErrorCode::environment, "{}: is in use by another process", name_);
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_NOMEM:
      fail(ErrorCode::environment, "{}: cannot be {}: {}", name_,
           (code & 0xff) == SQLITE_CANTOPEN ? "opened" : "written", reason);
    case SQLITE_ERROR:
      // A table or column that should be there is not.
      bad_input("{}: is not a campaign's store: {}", name_, reason);
    default:
      fail(ErrorCode::internal, "{}: {}", name_, reason);
  }
}

Transaction::Transaction(Database& database) : database_(database) {
  database_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  // If this fails, too, SQLite has already undone it, or does so at the next opening.
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace galvani
