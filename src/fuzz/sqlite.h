// SQLite with errors as sentences.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace galvani {

class Database;

// A prepared statement. Parameters and columns count from 0.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);

  template <class... Values>
  Statement& bind(const Values&... values) {
    int index = 0;
    (set(index++, values), ...);
    return *this;
  }
  // True: there is a row.
  bool step();
  // Binds, runs to the end and makes ready for the next time.
  template <class... Values>
  void run(const Values&... values) {
    bind(values...);
    finish();
  }
  // The same with what was set before.
  void finish() {
    while (step()) {
    }
    reset();
  }
  void reset();

  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::string_view blob(int column) const;  // until the next step
  void get(int column, std::int64_t& value) const { value = integer(column); }
  void get(int column, double& value) const { value = real(column); }
  void get(int column, bool& value) const { value = integer(column) != 0; }
  void get(int column, std::string& value) const { value = text(column); }

  // A blob is bound by address: it must live until the statement was run.
  struct Blob {
    std::string_view bytes;
  };

  // One parameter.
  void set(int index, std::int64_t value);
  void set(int index, int value) { set(index, static_cast<std::int64_t>(value)); }
  void set(int index, bool value) { set(index, static_cast<std::int64_t>(value)); }
  void set(int index, const std::optional<std::int64_t>& value);
  void set(int index, double value);
  void set(int index, const std::string& value);
  void set(int index, const Blob& value);

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  enum class Mode {
    read,
    write,
    still,  // to read what nobody writes: nothing is made beside the file, and its log is not looked at
  };
  // Error(environment) if the machine says no, Error(bad_input) if it is not a database or a damaged one.
  Database(const std::filesystem::path& path, Mode mode);

  void execute(const std::string& sql);
  sqlite3* handle() const { return handle_.get(); }
  [[noreturn]] void failed(int code) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  std::string name_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// Undone at the end of its life unless committed.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace galvani
