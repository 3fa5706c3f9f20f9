// Processes that do one job together, such as the ranks of an MPI job. Each runs the same program on the same inputs
// and holds the same state; what takes long is cut over them, and everybody gets everybody's part. So nothing but
// results is ever sent, and a result does not depend on how many there are: which task a row belongs to is a function
// of the request alone, as it is for worker threads. The first process speaks and writes files, the others are silent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace galvani {

// Calls are collective: all processes make them in the same order, each from one thread.
class Crew {
 public:
  virtual ~Crew() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Where it keeps memory that its processes share; a wall around them must leave it open. Empty: nowhere.
  virtual std::filesystem::path folder() const { return {}; }

  // Of each number the largest that any process has.
  virtual std::vector<std::int64_t> largest(const std::vector<std::int64_t>& numbers) = 0;
  // Process r has made the rows from ends[r - 1] (0 for the first) up to ends[r]; afterwards all have all of them.
  virtual void share_rows(void* rows, std::size_t row_bytes, const std::vector<std::int64_t>& ends) = 0;
  // Everybody's text, by rank.
  virtual std::vector<std::string> gather(const std::string& own) = 0;
  // Likewise, for the first process; the others have nothing of it.
  virtual std::vector<std::string> gather_by_first(const std::string& own) = 0;
  // The first one's text.
  virtual std::string broadcast(const std::string& own) = 0;
  // A crew of those who name the same part, in the order of their ranks.
  virtual std::unique_ptr<Crew> part(int number) = 0;
};

// Null: this process works alone. So does whoever asks inside a task of a worker thread, or beside a WorkAlone.
Crew* crew();
// A crew of several; before any work.
void set_crew(std::unique_ptr<Crew> crew);
// The process that speaks and writes: the first of a crew, or the only one.
bool leads();

// How large the pool of worker threads is unless set_workers is called, where a machine's cores are not this process's
// alone.
void set_usual_workers(int n);

// While it lives nothing is cut: for what only one process does.
class WorkAlone {
 public:
  WorkAlone();
  ~WorkAlone();
  WorkAlone(const WorkAlone&) = delete;
  WorkAlone& operator=(const WorkAlone&) = delete;
};

// What the first process makes, alone; all have it, or fail with its error.
std::string made_by_first(const std::function<std::string()>& make);

// Tasks [0, tasks), cut over the crew and there over the worker threads.
class CrewWork {
 public:
  explicit CrewWork(std::int64_t tasks);

  // task(index, worker) for all of them, those of other processes excepted; a result must depend on the index alone.
  // What fails in one process fails in all of them with the same sentence. Ctrl-C in one is Ctrl-C in all, from here
  // on.
  void run(const std::function<void(std::int64_t index, int worker)>& task) const;

  // Whether some of it was done elsewhere and is to be shared. Then, in the same order everywhere:
  bool cut() const { return crew_ != nullptr; }
  // `rows` rows of which task t has filled [t * span, (t + 1) * span).
  void share(void* values, std::size_t row_bytes, std::int64_t span, std::int64_t rows) const;
  // One text of each task.
  void share(std::vector<std::string>& texts) const;
  // Likewise, but only the first process has them all afterwards.
  void tell_first(std::vector<std::string>& texts) const;

 private:
  std::string own_of(const std::vector<std::string>& texts) const;
  void take(const std::vector<std::string>& all, std::vector<std::string>& texts) const;
  std::int64_t end_of(int rank) const;  // the first task that is not its or an earlier one's

  std::int64_t tasks_;
  Crew* crew_;
};

// Groups of a crew that work on different things for a while; one process alone is one group.
class CrewParts {
 public:
  // As many groups, of sizes that differ by one at most, or as many as there are processes.
  explicit CrewParts(int wanted);
  ~CrewParts();
  CrewParts(const CrewParts&) = delete;
  CrewParts& operator=(const CrewParts&) = delete;

  int count() const { return count_; }
  int own() const { return own_; }

  // work(), by each group as if it were the whole crew; then all meet and have the text of every group, in their order.
  // What fails in one group fails in all of them.
  std::vector<std::string> run(const std::function<std::string()>& work);

 private:
  std::unique_ptr<Crew> part_;  // null: there is one process
  int count_ = 1;
  int own_ = 0;
};

// Error(environment) unless all processes have the same `value`: they are to hold the same state, and do not.
void check_crew_agrees(const std::string& value, const std::string& what);

}  // namespace galvani
