// Data specs: `mnist:train[80%:]`, `digits[sample=1000,seed=3]`, `photos/[class=cat,dog][:100]`, `a.npz+b.npz`,
// `words/[length=16000]`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace galvani {

// A position or an amount: a number, or a percentage of what there is.
struct Amount {
  double value = 0;
  bool percent = false;

  // Counted from the start, negative values from the end; may lie outside [0, n].
  std::int64_t of(std::int64_t n) const;
  std::string str() const;
};

// One pair of brackets.
struct Bracket {
  enum class Kind { slice, item, sample, classes, per_class, length };
  Kind kind = Kind::slice;
  std::optional<Amount> begin;       // slice; the position of an item
  std::optional<Amount> end;         // slice
  std::int64_t step = 1;             // slice; never 0
  Amount count;                      // sample, per_class; length: samples of every sound
  std::uint64_t seed = 0;            // sample, per_class
  std::vector<std::string> classes;  // names or numbers

  std::string str() const;
};

struct DataSpec {
  std::string source;  // a name of the catalogue, or a path
  bool is_path = false;
  std::string split;  // empty: not named
  std::vector<Bracket> selectors;

  bool is_in_memory() const;  // of this process: galvani/data/memory.h
  // What sounds are cut or padded to; 0: they stay as they are.
  std::int64_t clip_length() const;
  std::string str() const;
};

// The parts that '+' joins. A usage error names the spec and what is wrong with it. A known name is never a path:
// write ./mnist for a folder of that name.
std::vector<DataSpec> parse_data_specs(const std::string& text);
// The same with absolute paths, for records that are read elsewhere.
std::string absolute_spec(const std::string& text);
// The training data of the known set that a spec names; empty if it names a path, or several sets.
std::string training_split_of(const std::string& text);

// The rows that `selectors`, applied from left to right, leave of 0..n-1; `name` is named in errors.
// `labels` is [n] int64.
std::vector<std::int64_t> select_rows(const std::vector<Bracket>& selectors, const at::Tensor& labels,
                                      const std::vector<std::string>& class_names, const std::string& name);

}  // namespace galvani
