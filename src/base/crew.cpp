#include "galvani/base/crew.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <stdexcept>

#include "base/shared_interrupt.h"
#include "base/worker_task.h"
#include "galvani/base/archive.h"
#include "galvani/base/crew_costs.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace {

std::unique_ptr<Crew>& current_crew() {
  static std::unique_ptr<Crew> instance;
  return instance;
}

// alignas: as in parallel.cpp.
alignas(16) thread_local int working_alone = 0;

CrewCosts& costs() {
  static CrewCosts all;
  return all;
}

// Adds the time it lives; nothing inside tasks of worker threads, which are somebody's share already.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

void run_counted(std::int64_t all_tasks, std::int64_t tasks, const std::function<void(std::int64_t, int)>& task) {
  if (inside_worker_task()) {
    workers().run(tasks, task);
    return;
  }
  CrewCosts::Kind& kind = costs().runs[all_tasks];
  ++kind.calls;
  Stopwatch watch(kind.seconds);
  workers().run(tasks, task);
}

std::int64_t crew_calls = 0;  // of CrewWork::run: the same in all processes at the same place

// An error on its way to the others. Not every exception is ours: `foreign` ones are told by their text.
struct CrewFailure {
  static constexpr std::int64_t kNone = -1;
  static constexpr std::int64_t kForeign = -2;
  std::int64_t code = kNone;
  std::string text;

  std::string packed() const {
    ArchiveWriter out;
    out.put(code);
    out.put(text);
    return out.bytes();
  }
  static CrewFailure unpacked(const std::string& bytes) {
    ArchiveReader in(bytes, "another process");
    CrewFailure failure;
    failure.code = in.get<std::int64_t>();
    failure.text = in.get_text();
    return failure;
  }
  [[noreturn]] void raise() const {
    if (code == kForeign) throw std::runtime_error(text);
    throw Error(static_cast<ErrorCode>(code), text);
  }
};

CrewFailure failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return {static_cast<std::int64_t>(e.code()), e.what()};
  } catch (const std::exception& e) {
    return {CrewFailure::kForeign, e.what()};
  }
  return {};
}

}  // namespace

const CrewCosts& crew_costs() {
  return costs();
}

Crew* crew() {
  return working_alone > 0 || inside_worker_task() ? nullptr : current_crew().get();
}

void set_crew(std::unique_ptr<Crew> crew) {
  current_crew() = std::move(crew);
  if (current_crew()) agree_on_interrupts();
}

bool leads() {
  return !current_crew() || current_crew()->rank() == 0;
}

WorkAlone::WorkAlone() {
  ++working_alone;
}
WorkAlone::~WorkAlone() {
  --working_alone;
}

std::string made_by_first(const std::function<std::string()>& make) {
  Crew* all = crew();
  if (all == nullptr) return make();
  std::string text;
  CrewFailure failure;
  if (all->rank() == 0) {
    WorkAlone alone;
    failure = failure_of([&] { text = make(); });
  }
  failure = CrewFailure::unpacked(all->broadcast(failure.packed()));
  if (failure.code != CrewFailure::kNone) failure.raise();
  return all->broadcast(text);
}

CrewWork::CrewWork(std::int64_t tasks) : tasks_(tasks), crew_(crew()) {}

std::int64_t CrewWork::end_of(int rank) const {
  return rank < 0 ? 0 : tasks_ * (rank + 1) / crew_->size();
}

void CrewWork::run(const std::function<void(std::int64_t, int)>& task) const {
  if (crew_ == nullptr) {
    run_counted(tasks_, tasks_, task);
    return;
  }
  std::int64_t first = end_of(crew_->rank() - 1);
  std::int64_t last = end_of(crew_->rank());
  CrewFailure failure = failure_of(
      [&] { run_counted(tasks_, last - first, [&](std::int64_t index, int worker) { task(first + index, worker); }); });
  Stopwatch watch(costs().share_seconds);
  // One small exchange tells whether all came to the same place, whether all went well, and whether anyone was asked to
  // stop.
  std::int64_t place = (++crew_calls << 24) + tasks_ % (1 << 24);
  std::vector<std::int64_t> agreed =
      crew_->largest({failure.code == CrewFailure::kNone ? 0 : 1, own_interrupt_signal(), place, -place});
  if (agreed[2] != -agreed[3])
    fail(ErrorCode::internal, "the processes of this job have come to do different work, which they must not");
  if (agreed[1] != 0) set_agreed_interrupt(static_cast<int>(agreed[1]));
  if (agreed[0] == 0) return;
  for (const std::string& bytes : crew_->gather(failure.packed())) {
    CrewFailure theirs = CrewFailure::unpacked(bytes);
    if (theirs.code != CrewFailure::kNone) theirs.raise();
  }
}

void CrewWork::share(void* values, std::size_t row_bytes, std::int64_t span, std::int64_t rows) const {
  Stopwatch watch(costs().share_seconds);
  costs().shared_bytes += rows * static_cast<std::int64_t>(row_bytes);
  std::vector<std::int64_t> ends;
  for (int rank = 0; rank < crew_->size(); ++rank) ends.push_back(std::min(end_of(rank) * span, rows));
  crew_->share_rows(values, row_bytes, ends);
}

std::string CrewWork::own_of(const std::vector<std::string>& texts) const {
  ArchiveWriter own;
  for (std::int64_t i = end_of(crew_->rank() - 1); i < end_of(crew_->rank()); ++i)
    own.put(texts[static_cast<std::size_t>(i)]);
  return own.bytes();
}

void CrewWork::take(const std::vector<std::string>& all, std::vector<std::string>& texts) const {
  for (int rank = 0; rank < crew_->size(); ++rank) {
    const std::string& bytes = all[static_cast<std::size_t>(rank)];
    costs().shared_bytes += static_cast<std::int64_t>(bytes.size());
    ArchiveReader in(bytes, "another process");
    for (std::int64_t i = end_of(rank - 1); i < end_of(rank); ++i)
      texts[static_cast<std::size_t>(i)] = in.get_text(bytes.size());
  }
}

void CrewWork::share(std::vector<std::string>& texts) const {
  Stopwatch watch(costs().share_seconds);
  take(crew_->gather(own_of(texts)), texts);
}

void CrewWork::tell_first(std::vector<std::string>& texts) const {
  Stopwatch watch(costs().share_seconds);
  std::vector<std::string> all = crew_->gather_by_first(own_of(texts));
  if (crew_->rank() == 0) take(all, texts);
}

CrewParts::CrewParts(int wanted) {
  Crew* all = crew();
  if (all == nullptr) return;
  count_ = std::max(1, std::min(wanted, all->size()));
  own_ = static_cast<int>(std::int64_t{all->rank()} * count_ / all->size());
  part_ = all->part(own_);
}

CrewParts::~CrewParts() = default;

std::vector<std::string> CrewParts::run(const std::function<std::string()>& work) {
  if (part_ == nullptr) return {work()};
  // Groups do different amounts of work, so their calls are not counted against each other.
  std::int64_t calls = crew_calls;
  bool first = part_->rank() == 0;
  std::string text;
  std::swap(current_crew(), part_);
  CrewFailure failure = failure_of([&] { text = work(); });
  std::swap(current_crew(), part_);
  crew_calls = calls;
  ArchiveWriter own;
  own.put(failure.packed());
  if (first && failure.code == CrewFailure::kNone) own.put(text);
  std::vector<std::string> texts;
  for (const std::string& bytes : crew()->gather(own.bytes())) {
    ArchiveReader in(bytes, "another process");
    CrewFailure theirs = CrewFailure::unpacked(in.get_text());
    if (theirs.code != CrewFailure::kNone) {
      if (static_cast<ErrorCode>(theirs.code) == ErrorCode::interrupted && !interrupted()) set_agreed_interrupt(SIGINT);
      theirs.raise();
    }
    if (!in.rest().empty()) texts.push_back(in.get_text(bytes.size()));
  }
  return texts;
}

void check_crew_agrees(const std::string& value, const std::string& what) {
  Crew* all = crew();
  if (all == nullptr) return;
  std::string hash = sha256(value);
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < 16; i += 8) {
    auto part = static_cast<std::int64_t>(std::stoull(hash.substr(i, 8), nullptr, 16));
    numbers.insert(numbers.end(), {part, -part});
  }
  std::vector<std::int64_t> agreed = all->largest(numbers);
  if (agreed[0] != -agreed[1] || agreed[2] != -agreed[3])
    fail(ErrorCode::environment,
         "{} is not the same in all processes of this job; do they run on different kinds of processors, or with other "
         "versions of the libraries?",
         what);
}

}  // namespace galvani
