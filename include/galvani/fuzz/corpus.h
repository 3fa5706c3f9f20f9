// What a campaign starts from: the seeds, and every candidate its guide kept.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace galvani {

struct Entry {
  std::int64_t parent = 0;  // 0: a seed
  std::int64_t seed = 0;
  std::int64_t label = 0;
  std::int64_t iteration = 0;  // in which it was added; 0: a seed
  std::string memo;            // what its generator has to know of the lineage
  double gain = 0;
  std::int64_t picks = 0;
};

// Entries are numbered from 1 in the order they were added. Images are kept in memory up to a bound; the others are
// fetched from the store when they are needed.
class Corpus {
 public:
  using Fetch = std::function<at::Tensor(std::int64_t id)>;
  Corpus(Fetch fetch, std::int64_t cache_bytes);

  std::int64_t size() const { return static_cast<std::int64_t>(entries_.size()); }
  const std::vector<Entry>& entries() const { return entries_; }  // entry `id` is at id - 1
  const Entry& at(std::int64_t id) const { return entries_[static_cast<std::size_t>(id - 1)]; }

  // A seed: it is its own.
  std::int64_t add_seed(std::int64_t label, double gain, const at::Tensor& image);
  // A candidate made of `parent`. `image` may be undefined: it is in the store.
  std::int64_t add(std::int64_t parent, std::int64_t iteration, std::string memo, double gain, const at::Tensor& image);
  void count_pick(std::int64_t id) { ++entries_[static_cast<std::size_t>(id - 1)].picks; }
  void set_gain(std::int64_t id, double gain) { entries_[static_cast<std::size_t>(id - 1)].gain = gain; }
  void set_picks(std::int64_t id, std::int64_t picks) { entries_[static_cast<std::size_t>(id - 1)].picks = picks; }

  // As files hold it.
  at::Tensor image(std::int64_t id);

  // Of a task by reference: what each seed's answers are held against, [seeds, outputs].
  void set_references(at::Tensor references) { references_ = std::move(references); }
  // Of so many entries; undefined where there are none.
  at::Tensor references(const std::vector<std::int64_t>& ids) const;

 private:
  at::Tensor cached(std::int64_t id, const std::function<at::Tensor()>& make);

  Fetch fetch_;
  std::int64_t cache_bytes_;
  std::vector<Entry> entries_;
  at::Tensor references_;
  // Images by the entries' ids, the most recently used first.
  std::list<std::pair<std::int64_t, at::Tensor>> cache_;
  std::unordered_map<std::int64_t, std::list<std::pair<std::int64_t, at::Tensor>>::iterator> cache_index_;
  std::int64_t cached_bytes_ = 0;
};

}  // namespace galvani
