// Labelled inputs that need not be in memory: rows are fetched when they are asked for, so that whoever takes some at a
// time can go through more of them than any memory holds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "galvani/data/dataset.h"
#include "galvani/data/intake.h"
#include "galvani/data/labels.h"
#include "galvani/data/sample.h"

namespace galvani {

class Source;

class DataView : public Labelled {
 public:
  // [rows.size(), ...type.shape] of type.dtype(); rows are in [0, size()), in any order.
  using Fetch = std::function<at::Tensor(const std::vector<std::int64_t>& rows)>;

  // Error(bad_input) unless labels and class names fit together.
  DataView(Labelled about, SampleType type, Fetch fetch);
  // What is in memory is a view, too. NOLINTNEXTLINE(google-explicit-constructor)
  DataView(const Dataset& data);

  std::int64_t size() const { return labels.size(0); }
  const SampleType& type() const { return type_; }

  // [rows, ...type().shape] of type().dtype(), contiguous. What a source finds wrong with a row is found here.
  at::Tensor fetch(std::int64_t first, std::int64_t count) const;
  at::Tensor fetch(const std::vector<std::int64_t>& rows) const;

  // Calls `take` with one piece after the other, of at most `piece` rows, and the number of its first row. Ctrl-C is
  // honoured between pieces.
  void for_each_piece(std::int64_t piece,
                      const std::function<void(const at::Tensor& rows, std::int64_t first)>& take) const;

  // The rows at `indices` (in that order, repeats allowed).
  DataView subset(const std::vector<std::int64_t>& indices) const;
  // All of it; Error(bad_input) if it does not fit the memory.
  Dataset load() const;

 private:
  SampleType type_;
  std::shared_ptr<const Fetch> fetch_;
};

// One after the other. Types must agree; so must class names, where both have them.
DataView concatenate(const std::vector<DataView>& parts);

// SHA-256 of shape, values and labels, read piece by piece.
std::string content_hash(const DataView& data);

// What a spec names, before it is known what a model wants of it.
class OpenedData {
 public:
  explicit OpenedData(const std::string& spec, const std::string& default_split = "test");
  // Of the first input that can be read; those of a folder may differ.
  SampleType type() const;
  // Of all inputs, for models that do not say what they take; none: the files at hand (some are looked at) are of
  // several sizes.
  std::optional<SampleType> common_type() const;
  // Images and sounds are made into what the model takes, and labels are matched to its classes by name; what was done
  // is said in a line of the log. Error(bad_input) that names and counts the files that are broken, as far as their
  // headers show, and for classes that the model does not have. Values are read when they are fetched.
  DataView view(const InputNeeds& needs = {}) const;
  // How many inputs there are of each size, most frequent first; one size of data that is not made of files. Broken
  // files do not count.
  std::vector<std::pair<SampleType, std::int64_t>> sizes() const;

 private:
  struct Part {
    Labelled about;  // of the rows below
    std::shared_ptr<Source> source;
    std::vector<std::int64_t> rows;
  };
  static DataView view_of(const Part& part, const InputNeeds& needs);
  std::vector<Part> parts_;
};

// Opens what a spec names, as load_data does, as its files hold it; only labels and headers are read.
DataView open_data(const std::string& spec, const std::string& default_split = "test");

}  // namespace galvani
