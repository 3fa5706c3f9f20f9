// The store of a campaign that several processes work on (galvani/base/crew.h): the first one has it, and tells the
// others what it reads. Alone it is the store itself.
#pragma once

#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/store.h"

namespace galvani {

// As Store; calls that return something are collective.
class SharedStore {
 public:
  SharedStore(const std::filesystem::path& folder, std::int64_t keep_files);

  // By the first process alone; the others do nothing. Begins to add; every other call waits for the end of it and
  // fails if it failed.
  void add(std::shared_ptr<const BatchRecord> batch, const Yields& yields, std::vector<std::int64_t> pick_counts,
           double seconds);
  // Once it returns, what was added is there for good.
  void settle();
  // Of the first process, or Error(internal).
  Store& own();

  std::string repeated_otherwise(const BatchRecord& batch);
  std::int64_t last_batch();
  std::int64_t iterations();
  double seconds();
  std::string absorbed();
  std::string chain(std::int64_t batch);
  std::int64_t seeds();  // how many
  void for_each_input(std::int64_t last_iteration, const std::function<void(const InputRecord&)>& visit);
  void for_each_fault_image(std::int64_t last_iteration, const Store::SeeImage& visit);
  void for_each_seed_image(const Store::SeeImage& visit);
  void for_each_broken_seed(std::int64_t last_iteration, const std::function<void(std::int64_t seed)>& visit);
  std::string image(std::int64_t id);

 private:
  std::optional<Store> store_;  // of the first process
  std::future<void> adding_;
};

}  // namespace galvani
