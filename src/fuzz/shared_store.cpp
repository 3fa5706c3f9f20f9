#include "fuzz/shared_store.h"

#include "fuzz/rows.h"
#include "galvani/base/archive.h"
#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace {

// A number that the first process reads.
template <class Number, class Read>
Number shared_number(Read&& read) {
  std::string bytes = made_by_first([&] {
    ArchiveWriter out;
    out.put(Number{read()});
    return out.bytes();
  });
  return ArchiveReader(bytes, "another process").get<Number>();
}

using SeenRow = std::function<void(const std::string& sha256, std::int64_t label, std::int64_t id)>;

// Rows of images that the first process reads.
void shared_images(const std::function<void(const SeenRow&)>& read, const SeenRow& visit) {
  if (crew() == nullptr) {
    read(visit);
    return;
  }
  std::string bytes = made_by_first([&] {
    ArchiveWriter out;
    read([&](const std::string& hash, std::int64_t label, std::int64_t id) {
      out.put(hash);
      out.put(label);
      out.put(id);
    });
    return out.bytes();
  });
  ArchiveReader in(bytes, "another process");
  while (!in.rest().empty()) {
    std::string hash = in.get_text();
    auto label = in.get<std::int64_t>();
    auto id = in.get<std::int64_t>();
    visit(hash, label, id);
  }
}

}  // namespace

SharedStore::SharedStore(const std::filesystem::path& folder, std::int64_t keep_files) {
  if (leads()) store_.emplace(folder, keep_files);
}

Store& SharedStore::own() {
  if (!store_) fail(ErrorCode::internal, "only the first process of a job has the store");
  settle();
  return *store_;
}

void SharedStore::add(std::shared_ptr<const BatchRecord> batch, const Yields& yields,
                      std::vector<std::int64_t> pick_counts, double seconds) {
  if (!store_) return;
  settle();
  adding_ = run_beside([this, batch = std::move(batch), yields, pick_counts = std::move(pick_counts), seconds] {
    store_->add(*batch, yields, pick_counts, seconds);
  });
}

void SharedStore::settle() {
  if (adding_.valid()) adding_.get();
}

std::string SharedStore::repeated_otherwise(const BatchRecord& batch) {
  return made_by_first([&] { return own().repeated_otherwise(batch); });
}
std::int64_t SharedStore::last_batch() {
  return shared_number<std::int64_t>([&] { return own().last_batch(); });
}
std::int64_t SharedStore::iterations() {
  return shared_number<std::int64_t>([&] { return own().iterations(); });
}
double SharedStore::seconds() {
  return shared_number<double>([&] { return own().seconds(); });
}
std::string SharedStore::absorbed() {
  return made_by_first([&] { return own().absorbed(); });
}
std::string SharedStore::chain(std::int64_t batch) {
  return made_by_first([&] { return own().chain(batch); });
}
std::int64_t SharedStore::seeds() {
  return shared_number<std::int64_t>([&] { return static_cast<std::int64_t>(own().seeds().size()); });
}
std::string SharedStore::image(std::int64_t id) {
  return made_by_first([&] { return own().image(id); });
}

void SharedStore::for_each_input(std::int64_t last_iteration, const std::function<void(const InputRecord&)>& visit) {
  if (crew() == nullptr) {
    own().for_each_input(last_iteration, visit);
    return;
  }
  std::string bytes = made_by_first([&] {
    ArchiveWriter out;
    own().for_each_input(last_iteration, [&](const InputRecord& input) { put_fields(out, input); });
    return out.bytes();
  });
  ArchiveReader in(bytes, "another process");
  while (!in.rest().empty()) {
    InputRecord input;
    get_fields(in, input);
    visit(input);
  }
}

void SharedStore::for_each_fault_image(std::int64_t last_iteration, const Store::SeeImage& visit) {
  shared_images([&](const SeenRow& see) { own().for_each_fault_image(last_iteration, see); }, visit);
}
void SharedStore::for_each_seed_image(const Store::SeeImage& visit) {
  shared_images([&](const SeenRow& see) { own().for_each_seed_image(see); }, visit);
}

void SharedStore::for_each_broken_seed(std::int64_t last_iteration,
                                       const std::function<void(std::int64_t seed)>& visit) {
  std::string bytes = made_by_first([&] {
    std::vector<std::int64_t> broken;
    own().for_each_broken_seed(last_iteration, [&](std::int64_t seed) { broken.push_back(seed); });
    ArchiveWriter out;
    out.put(broken);
    return out.bytes();
  });
  for (std::int64_t seed : ArchiveReader(bytes, "another process").get_vector<std::int64_t>()) visit(seed);
}

}  // namespace galvani
