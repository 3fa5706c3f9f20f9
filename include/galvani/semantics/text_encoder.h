// A text encoder turns texts into vectors whose cosine says how much alike in meaning they are. Built in is one that
// needs no file; others read word vectors or networks that the user has or `galvani model get` fetched.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "galvani/base/registry.h"

namespace galvani {

class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  const std::string& id() const { return id_; }      // "hash"
  const std::string& spec() const { return spec_; }  // every option resolved
  virtual std::int64_t width() const = 0;            // D
  // Of every file it reads: path → SHA-256. What a run that compares texts should record and check when it resumes.
  virtual std::map<std::string, std::string> files_sha256() const { return {}; }

  // [N, D] float, rows of length 1. A text that nothing is known of (an empty one, for instance) is a row of zeros.
  // Each distinct text is encoded once and kept; what it becomes does not depend on the texts beside it, on order or on
  // threads. May be called by several threads. Error(bad_input) for a text that is not UTF-8.
  at::Tensor encode(const std::vector<std::string>& texts);
  std::size_t kept() const;  // how many distinct texts have been encoded

 private:
  friend std::unique_ptr<TextEncoder> make_text_encoder(const Spec& spec);

  // [N, D] float of any length; the texts are distinct, not empty and UTF-8.
  virtual at::Tensor run(const std::vector<std::string>& texts) = 0;

  std::string id_;
  std::string spec_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::size_t> row_of_;
  std::vector<float> rows_;  // [kept, D]
};

// Of two vectors of one width ([D], or [1, D]); 0 if one of them is zeros.
double cosine(const at::Tensor& a, const at::Tensor& b);

using TextEncoderRegistry = Registry<std::unique_ptr<TextEncoder>>;
const TextEncoderRegistry& text_encoders();
std::unique_ptr<TextEncoder> make_text_encoder(const Spec& spec);

}  // namespace galvani
