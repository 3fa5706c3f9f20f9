#include "galvani/fuzz/corpus.h"

#include <ATen/ATen.h>

namespace galvani {

Corpus::Corpus(const MutatorSet& set, Fetch fetch, std::int64_t cache_bytes)
    : set_(set), fetch_(std::move(fetch)), cache_bytes_(cache_bytes) {}

std::int64_t Corpus::add_seed(std::int64_t label, double gain, const at::Tensor& image) {
  std::int64_t id = size() + 1;
  Entry entry;
  entry.seed = id;
  entry.label = label;
  entry.gain = gain;
  entries_.push_back(entry);
  if (image.defined()) cached(id, [&] { return image; });
  return id;
}

std::int64_t Corpus::add(std::int64_t parent, std::int64_t iteration, const Rule& rule, bool affine, double gain,
                         const at::Tensor& image) {
  std::int64_t id = size() + 1;
  Entry entry;
  entry.parent = parent;
  entry.seed = at(parent).seed;
  entry.label = at(parent).label;
  entry.iteration = iteration;
  entry.gain = gain;
  entry.affine_step = at(parent).affine_step;
  if (affine && entry.affine_step == 0) {
    entry.affine_step = id;
    affine_rules_[id] = rule;
  }
  entries_.push_back(entry);
  if (image.defined()) cached(id, [&] { return image; });
  return id;
}

at::Tensor Corpus::image(std::int64_t id) {
  return cached(id, [&] { return fetch_(id); });
}

at::Tensor Corpus::reference(std::int64_t id) {
  const Entry& entry = at(id);
  if (entry.affine_step == 0) return image(entry.seed);
  std::int64_t step = entry.affine_step;
  // Before the affine step the reference is the seed itself.
  return cached(-step, [&] { return set_.apply(affine_rules_.at(step), image(entry.seed)); });
}

at::Tensor Corpus::cached(std::int64_t key, const std::function<at::Tensor()>& make) {
  auto found = cache_index_.find(key);
  if (found != cache_index_.end()) {
    cache_.splice(cache_.begin(), cache_, found->second);
    return found->second->second;
  }
  at::Tensor image = make().contiguous();
  cache_.emplace_front(key, image);
  cache_index_[key] = cache_.begin();
  cached_bytes_ += image.numel();
  while (cached_bytes_ > cache_bytes_ && cache_.size() > 1) {
    cached_bytes_ -= cache_.back().second.numel();
    cache_index_.erase(cache_.back().first);
    cache_.pop_back();
  }
  return image;
}

}  // namespace galvani
