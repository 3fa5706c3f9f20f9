#include "galvani/cluster/mpi.h"

#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <thread>

#include "cluster/launch.h"
#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"

namespace galvani {
namespace {

constexpr std::size_t kMostBytes = INT_MAX / 2;  // of one message
constexpr std::chrono::seconds kGrace{3};        // for the others to come to their end, too

int count_of(std::size_t n) {
  return static_cast<int>(n);
}

// Of everybody's text, by rank.
struct Lengths {
  Lengths(const std::string& own, int ranks, MPI_Comm all) : each(static_cast<std::size_t>(ranks)) {
    auto length = static_cast<std::int64_t>(own.size());
    MPI_Allgather(&length, 1, MPI_INT64_T, each.data(), 1, MPI_INT64_T, all);
    for (std::int64_t one : each) {
      counts.push_back(static_cast<int>(one));
      places.push_back(static_cast<int>(total));
      total += static_cast<std::size_t>(one);
    }
  }

  std::vector<std::string> cut(const std::string& texts) const {
    std::vector<std::string> result;
    std::size_t at = 0;
    for (std::int64_t one : each) {
      result.push_back(texts.substr(at, static_cast<std::size_t>(one)));
      at += static_cast<std::size_t>(one);
    }
    return result;
  }

  std::vector<std::int64_t> each;
  std::size_t total = 0;
  // As MPI wants them; of no use where the total is more than a message may have.
  std::vector<int> counts, places;
};

class MpiCrew : public Crew {
 public:
  MpiCrew(std::filesystem::path folder, MPI_Comm all) : folder_(std::move(folder)), all_(all) {
    MPI_Comm_rank(all_, &rank_);
    MPI_Comm_size(all_, &size_);
  }
  ~MpiCrew() override {
    if (all_ != MPI_COMM_WORLD) MPI_Comm_free(&all_);
  }
  MpiCrew(const MpiCrew&) = delete;
  MpiCrew& operator=(const MpiCrew&) = delete;
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::filesystem::path folder() const override { return folder_; }

  std::vector<std::int64_t> largest(const std::vector<std::int64_t>& numbers) override {
    std::vector<std::int64_t> result(numbers.size());
    MPI_Allreduce(numbers.data(), result.data(), count_of(numbers.size()), MPI_INT64_T, MPI_MAX, all_);
    return result;
  }

  void share_rows(void* rows, std::size_t row_bytes, const std::vector<std::int64_t>& ends) override {
    if (row_bytes == 0 || ends.back() == 0) return;
    if (row_bytes > kMostBytes) fail(ErrorCode::internal, "a row of {} bytes is too long to be shared", row_bytes);
    // Counts are 32-bit numbers, so the unit is a row.
    MPI_Datatype row = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(count_of(row_bytes), MPI_BYTE, &row);
    MPI_Type_commit(&row);
    std::vector<int> counts;
    std::vector<int> places;
    std::int64_t begin = 0;
    for (std::int64_t end : ends) {
      places.push_back(static_cast<int>(begin));
      counts.push_back(static_cast<int>(end - begin));
      begin = end;
    }
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): MPI's own macro
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, rows, counts.data(), places.data(), row, all_);
    MPI_Type_free(&row);
  }

  std::vector<std::string> gather(const std::string& own) override {
    Lengths lengths(own, size_, all_);
    if (lengths.total > kMostBytes) return gather_in_turn(own, lengths);
    std::string texts(lengths.total, '\0');
    MPI_Allgatherv(own.data(), count_of(own.size()), MPI_BYTE, texts.data(), lengths.counts.data(),
                   lengths.places.data(), MPI_BYTE, all_);
    return lengths.cut(texts);
  }

  std::vector<std::string> gather_by_first(const std::string& own) override {
    Lengths lengths(own, size_, all_);
    if (lengths.total > kMostBytes) return gather_in_turn(own, lengths);
    std::string texts(rank_ == 0 ? lengths.total : 0, '\0');
    MPI_Gatherv(own.data(), count_of(own.size()), MPI_BYTE, texts.data(), lengths.counts.data(), lengths.places.data(),
                MPI_BYTE, 0, all_);
    return rank_ == 0 ? lengths.cut(texts) : std::vector<std::string>();
  }

  std::string broadcast(const std::string& own) override {
    auto length = static_cast<std::int64_t>(own.size());
    MPI_Bcast(&length, 1, MPI_INT64_T, 0, all_);
    std::string text = rank_ == 0 ? own : std::string();
    text.resize(static_cast<std::size_t>(length));
    send_all(text, 0);
    return text;
  }

  std::unique_ptr<Crew> part(int number) override {
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(all_, number, rank_, &some);
    return std::make_unique<MpiCrew>(folder_, some);
  }

 private:
  // More than one message may have: a text at a time.
  std::vector<std::string> gather_in_turn(const std::string& own, const Lengths& lengths) const {
    std::vector<std::string> texts;
    for (int from = 0; from < size_; ++from) {
      std::string text = from == rank_ ? own : std::string();
      text.resize(static_cast<std::size_t>(lengths.each[static_cast<std::size_t>(from)]));
      send_all(text, from);
      texts.push_back(std::move(text));
    }
    return texts;
  }

  void send_all(std::string& text, int from) const {
    for (std::size_t at = 0; at < text.size(); at += kMostBytes)
      MPI_Bcast(text.data() + at, count_of(std::min(kMostBytes, text.size() - at)), MPI_BYTE, from, all_);
  }

  std::filesystem::path folder_;
  MPI_Comm all_;
  int rank_ = 0;
  int size_ = 1;
};

// What Open MPI keeps in shared memory goes to a folder of its own, which is all that a wall around this process has to
// leave open for it; reading each other's memory directly is what a wall forbids. Who has set these knows better.
std::filesystem::path prepare_shared_memory() {
  ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  std::filesystem::path folder = "/dev/shm/galvani-" + std::to_string(::geteuid());
  bool made = ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
  struct stat status {};
  bool own = made && ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
             (status.st_mode & 0077U) == 0;
  if (!own) return {};
  ::setenv("OMPI_MCA_btl_vader_backing_directory", folder.c_str(), 0);
  return folder;
}

// Standard output and error go nowhere; returns a way to the latter.
int fall_silent() {
  int own = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    ::close(nowhere);
  }
  return own;
}

// Processes that share a machine share its cores, unless the launcher has given each its own.
void use_own_cores() {
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  int here = 1;
  MPI_Comm_size(machine, &here);
  MPI_Comm_free(&machine);
  int seen = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  bool bound = seen < static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  set_usual_workers(bound ? seen : std::max(1, seen / here));
}

}  // namespace

bool mpi_built() {
  return true;
}

MpiJob::MpiJob(int argc, char** argv) {
  if (launched_processes() <= 1) return;
  std::filesystem::path folder = prepare_shared_memory();
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  joined_ = true;
  auto crew = std::make_unique<MpiCrew>(folder, MPI_COMM_WORLD);
  if (crew->size() == 1)
    bad_usage(
        "{} processes were started together but do not know of each other; with Slurm say srun --mpi=pmix, or use "
        "mpirun",
        launched_processes());
  if (crew->rank() != 0) {
    own_stderr_ = fall_silent();
    Progress::set_enabled(false);
  }
  use_own_cores();
  set_crew(std::move(crew));
}

MpiJob::~MpiJob() {
  leave(0, "");
}

void MpiJob::leave(int exit_code, const std::string& sentence) {
  if (!joined_) return;
  joined_ = false;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  auto end = std::chrono::steady_clock::now() + kGrace;
  int all_here = 0;
  while (MPI_Test(&request, &all_here, MPI_STATUS_IGNORE) == MPI_SUCCESS && all_here == 0) {
    if (std::chrono::steady_clock::now() > end) {
      if (own_stderr_ >= 0 && !sentence.empty()) {
        std::string line = "error: " + sentence + "\n";
        (void)!::write(own_stderr_, line.data(), line.size());
      }
      MPI_Abort(MPI_COMM_WORLD, exit_code);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  set_crew(nullptr);
  MPI_Finalize();
}

}  // namespace galvani
