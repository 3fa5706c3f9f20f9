#include "galvani/fuzz/corpus.h"

#include <ATen/ATen.h>

namespace galvani {

Corpus::Corpus(Fetch fetch, std::int64_t cache_bytes) : fetch_(std::move(fetch)), cache_bytes_(cache_bytes) {}

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

std::int64_t Corpus::add(std::int64_t parent, std::int64_t iteration, std::string memo, double gain,
                         const at::Tensor& image) {
  std::int64_t id = size() + 1;
  Entry entry;
  entry.parent = parent;
  entry.seed = at(parent).seed;
  entry.label = at(parent).label;
  entry.iteration = iteration;
  entry.gain = gain;
  entry.memo = std::move(memo);
  entries_.push_back(std::move(entry));
  if (image.defined()) cached(id, [&] { return image; });
  return id;
}

at::Tensor Corpus::image(std::int64_t id) {
  return cached(id, [&] { return fetch_(id); });
}

at::Tensor Corpus::references(const std::vector<std::int64_t>& ids) const {
  if (!references_.defined()) return {};
  std::vector<std::int64_t> rows;
  rows.reserve(ids.size());
  for (std::int64_t id : ids) rows.push_back(at(id).seed - 1);
  return references_.index_select(0, at::tensor(rows, at::kLong));
}

at::Tensor Corpus::cached(std::int64_t id, const std::function<at::Tensor()>& make) {
  auto found = cache_index_.find(id);
  if (found != cache_index_.end()) {
    cache_.splice(cache_.begin(), cache_, found->second);
    return found->second->second;
  }
  at::Tensor image = make().contiguous();
  cache_.emplace_front(id, image);
  cache_index_[id] = cache_.begin();
  cached_bytes_ += static_cast<std::int64_t>(image.nbytes());
  while (cached_bytes_ > cache_bytes_ && cache_.size() > 1) {
    cached_bytes_ -= static_cast<std::int64_t>(cache_.back().second.nbytes());
    cache_index_.erase(cache_.back().first);
    cache_.pop_back();
  }
  return image;
}

}  // namespace galvani
