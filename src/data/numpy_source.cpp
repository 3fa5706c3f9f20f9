// Images and labels in NumPy files.
#include <algorithm>
#include <optional>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/base/text.h"
#include "galvani/data/npy.h"
#include "readers.h"
#include "row_file.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

// What is right of each input: a class, or numbers.
struct Truth {
  at::Tensor labels;
  at::Tensor answers;
};

class ArraySource final : public Source {
 public:
  ArraySource(at::Tensor images, SampleType type, Truth truth)
      : images_(std::move(images)), type_(std::move(type)), truth_(std::move(truth)) {}
  std::int64_t size() const override { return images_.size(0); }
  at::Tensor labels() override { return truth_.labels; }
  at::Tensor answers() override { return truth_.answers; }
  SampleType type(std::int64_t) override { return type_; }
  at::Tensor values(const std::vector<std::int64_t>& rows, std::int64_t) override {
    return images_from_array(images_.index_select(0, label_tensor(rows)), type_);
  }

 private:
  at::Tensor images_;  // as the file has it
  SampleType type_;
  Truth truth_;
};

// An array that stays in its file.
class ArrayFileSource final : public Source {
 public:
  ArrayFileSource(const fs::path& path, NpyLayout layout, SampleType type, Truth truth)
      : path_(path.string()),
        layout_(std::move(layout)),
        type_(std::move(type)),
        truth_(std::move(truth)),
        rows_(path, layout_.offset, type_.bytes()) {}
  std::int64_t size() const override { return layout_.shape[0]; }
  at::Tensor labels() override { return truth_.labels; }
  at::Tensor answers() override { return truth_.answers; }
  SampleType type(std::int64_t) override { return type_; }
  at::Tensor values(const std::vector<std::int64_t>& rows, std::int64_t) override {
    require_memory(path_, type_.bytes() * rows.size());
    return images_from_array(rows_.array(rows, layout_.shape), type_);
  }

 private:
  std::string path_;
  NpyLayout layout_;
  SampleType type_;
  Truth truth_;
  RowFile rows_;
};

SampleType checked_type(const std::string& what, at::ScalarType type, const std::vector<std::int64_t>& shape) {
  if (type != at::kByte)
    bad_input("{}: images are {}, but uint8 from 0 to 255 are needed (in NumPy: (x * 255).round().astype('uint8'))",
              what, toString(type));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) bad_input("{}: holds no images", what);
  return type_of_array(what, shape);
}

// Integers are classes; floats, or several numbers an image, are answers.
Truth checked_truth(const std::string& what, const at::Tensor& array) {
  at::Tensor labels = array;
  // [N, 1], as Keras saves CIFAR's, is as clear as [N].
  if (labels.dim() == 2 && labels.size(1) == 1) labels = labels.squeeze(1);
  if (labels.dim() != 1 && labels.dim() != 2)
    bad_input("{}: labels have {} axes, but a class or a row of numbers an image is needed", what, labels.dim());
  bool classes = labels.dim() == 1 && at::isIntegralType(labels.scalar_type(), /*includeBool=*/false);
  if (classes) return {labels.to(at::kLong), {}};
  return {no_labels(labels.size(0)), labels.to(at::kFloat).reshape({labels.size(0), -1}).contiguous()};
}

// One label or row of answers for each of `n` images.
Truth truth_of(std::int64_t n, const std::string& images_name, const std::string& labels_name,
               const std::optional<at::Tensor>& array) {
  Truth truth = array ? checked_truth(labels_name, *array) : Truth{no_labels(n), {}};
  if (truth.labels.size(0) != n)
    bad_input("{} holds {}, but {} holds {}", images_name, counted(n, "image"), labels_name,
              counted(truth.labels.size(0), "label"));
  return truth;
}

std::unique_ptr<Source> make_source(const std::string& images_name, const at::Tensor& images,
                                    const std::string& labels_name, const std::optional<at::Tensor>& labels) {
  SampleType type = checked_type(images_name, images.scalar_type(), images.sizes().vec());
  return std::make_unique<ArraySource>(images, type, truth_of(images.size(0), images_name, labels_name, labels));
}

// images.npy → labels.npy, x_test.npy → y_test.npy
std::optional<fs::path> labels_beside(const fs::path& images) {
  std::string name = images.filename().string();
  if (std::size_t at = name.find("images"); at != std::string::npos) {
    name.replace(at, 6, "labels");
  } else if (name[0] == 'x' || name[0] == 'X') {
    name[0] = static_cast<char>(name[0] + 1);
  } else {
    return std::nullopt;
  }
  fs::path path = images.parent_path() / name;
  return fs::is_regular_file(path) ? std::optional<fs::path>(path) : std::nullopt;
}

using Arrays = std::map<std::string, at::Tensor>;

const Arrays::value_type* first_of(const Arrays& arrays, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (auto it = arrays.find(key); it != arrays.end()) return &*it;
  }
  return nullptr;
}

std::unique_ptr<Source> open_npz(const OpenRequest& request) {
  Arrays arrays = read_npz(request.path);
  const std::string& split = request.split;
  const auto* images = first_of(arrays, {"x_" + split, split + "_images", "images_" + split, split + "_x"});
  const auto* labels = first_of(arrays, {"y_" + split, split + "_labels", "labels_" + split, split + "_y"});
  std::string path = request.path.string();
  if (images == nullptr && request.explicit_split) bad_input("{}: has no {} split", path, printable(split));
  if (images == nullptr) {
    images = first_of(arrays, {"images", "x", "data", "x_test"});
    labels = first_of(arrays, {"labels", "y", "y_test"});
  }
  if (images == nullptr) bad_input("{}: has no array called images, x, data, x_test or x_train", path);
  auto named = [&](const Arrays::value_type& entry) { return path + " (" + printable(entry.first) + ")"; };
  if (labels == nullptr) return make_source(named(*images), images->second, "", std::nullopt);
  return make_source(named(*images), images->second, named(*labels), labels->second);
}

}  // namespace

bool is_numpy(const fs::path& path) {
  if (fs::is_directory(path)) return false;
  if (path.extension() == ".npy" || path.extension() == ".npz") return true;
  std::string head = read_head(path, 6);
  return head == "\x93NUMPY" || head.substr(0, 4) == "PK\x03\x04";
}

std::unique_ptr<Source> open_numpy(const OpenRequest& request) {
  if (request.path.extension() == ".npz" || read_head(request.path, 2) == "PK") return open_npz(request);
  if (request.explicit_split)
    bad_input("{}: is one array and has no {} split", request.path.string(), printable(request.split));
  std::string name = request.path.string();
  NpyLayout layout = read_npy_layout(request.path);
  SampleType type = checked_type(name, layout.type, layout.shape);
  auto beside = labels_beside(request.path);
  std::string labels_name = beside ? beside->string() : "";
  std::optional<at::Tensor> labels;
  if (beside) labels = read_npy(*beside);
  // Rows of an array in Fortran order are scattered over the whole file.
  if (layout.fortran_order) return make_source(name, read_npy(request.path), labels_name, labels);
  return std::make_unique<ArrayFileSource>(request.path, layout, type,
                                           truth_of(layout.shape[0], name, labels_name, labels));
}

}  // namespace galvani
