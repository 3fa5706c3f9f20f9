// Images and labels in NumPy files.
#include <optional>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/data/npy.h"
#include "readers.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

class ArraySource final : public Source {
 public:
  ArraySource(at::Tensor images, at::Tensor labels) : images_(std::move(images)), labels_(std::move(labels)) {}
  std::int64_t size() const override { return images_.size(0); }
  at::Tensor labels() override { return labels_; }
  at::Tensor images(const std::vector<std::int64_t>& rows) override {
    return images_.index_select(0, label_tensor(rows));
  }

 private:
  at::Tensor images_;
  at::Tensor labels_;
};

at::Tensor checked_images(const std::string& what, const at::Tensor& array) {
  if (array.scalar_type() != at::kByte)
    bad_input("{}: images are {}, but uint8 from 0 to 255 are needed (in NumPy: (x * 255).round().astype('uint8'))",
              what, toString(array.scalar_type()));
  if (array.numel() == 0) bad_input("{}: holds no images", what);
  return images_from_array(what, array);
}

at::Tensor checked_labels(const std::string& what, const at::Tensor& array) {
  at::Tensor labels = array;
  // [N, 1], as Keras saves CIFAR's, is as clear as [N].
  if (labels.dim() == 2 && labels.size(1) == 1) labels = labels.squeeze(1);
  if (labels.dim() != 1) bad_input("{}: labels have {} axes, but one number an image is needed", what, labels.dim());
  if (!at::isIntegralType(labels.scalar_type(), /*includeBool=*/false))
    bad_input("{}: labels are {}, but integers are needed", what, toString(labels.scalar_type()));
  return labels.to(at::kLong);
}

std::unique_ptr<Source> make_source(const std::string& images_name, const at::Tensor& images,
                                    const std::string& labels_name, const std::optional<at::Tensor>& labels) {
  at::Tensor checked = checked_images(images_name, images);
  at::Tensor known = labels ? checked_labels(labels_name, *labels) : no_labels(checked.size(0));
  if (known.size(0) != checked.size(0))
    bad_input("{} holds {} images, but {} holds {} labels", images_name, checked.size(0), labels_name, known.size(0));
  return std::make_unique<ArraySource>(checked, known);
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
  auto labels = labels_beside(request.path);
  return make_source(request.path.string(), read_npy(request.path), labels ? labels->string() : "",
                     labels ? std::optional<at::Tensor>(read_npy(*labels)) : std::nullopt);
}

}  // namespace galvani
