// NumPy's files: .npy holds one array, .npz several named ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace galvani {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Reads format 1.0 to 3.0, either byte order, C or Fortran order. Booleans, integers, half, float and double are read;
// unsigned integers of 16, 32 and 64 bits become int32, int64 and int64. Objects (pickles), strings and structures are
// refused. Every fault of the file is an Error(bad_input).
at::Tensor read_npy(const std::filesystem::path& path);
std::map<std::string, at::Tensor> read_npz(const std::filesystem::path& path);
// `what` is named in errors.
at::Tensor parse_npy(std::string_view bytes, const std::string& what);

// Where the values of an .npy file lie.
struct NpyLayout {
  at::ScalarType type = at::kByte;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;    // of the first value
  bool fortran_order = false;  // the first axis runs fastest
};
NpyLayout read_npy_layout(const std::filesystem::path& path);

// Writes bool, uint8, int8, int16, int32, int64, half, float and double tensors, in C order. The file appears whole
// or not at all, and the same tensors give the same bytes.
void write_npy(const std::filesystem::path& path, const at::Tensor& tensor);
enum class Compression { stored, deflate };
void write_npz(const std::filesystem::path& path, const NamedTensors& tensors,
               Compression compression = Compression::stored);
std::string npy_bytes(const at::Tensor& tensor);

}  // namespace galvani
