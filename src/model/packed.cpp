#include "model/packed.h"

#include <ATen/ATen.h>

#include <cstring>

#include "galvani/base/archive.h"

namespace galvani {
namespace {

void pack(ArchiveWriter& out, const std::vector<at::Tensor>& tensors) {
  out.put(static_cast<std::uint64_t>(tensors.size()));
  for (const at::Tensor& tensor : tensors) {
    at::Tensor whole = tensor.contiguous();
    out.put(static_cast<std::int8_t>(whole.scalar_type()));
    out.put(whole.sizes().vec());
    out.put(std::string_view(static_cast<const char*>(whole.data_ptr()), whole.nbytes()));
  }
}

std::vector<at::Tensor> unpack(ArchiveReader& in) {
  std::vector<at::Tensor> tensors(in.get<std::uint64_t>());
  for (at::Tensor& tensor : tensors) {
    auto type = static_cast<at::ScalarType>(in.get<std::int8_t>());
    tensor = at::empty(in.get_vector<std::int64_t>(), type);
    std::string values = in.get_text(in.rest().size());
    if (values.size() != tensor.nbytes()) in.broken("holds a tensor of the wrong length");
    std::memcpy(tensor.data_ptr(), values.data(), values.size());
  }
  return tensors;
}

}  // namespace

void share_pieces(const CrewWork& work, std::vector<std::vector<at::Tensor>>& pieces, std::size_t per_task) {
  std::vector<std::string> texts;
  for (std::size_t first = 0; first < pieces.size(); first += per_task) {
    ArchiveWriter out;
    for (std::size_t i = first; i < first + per_task; ++i) pack(out, pieces[i]);
    texts.push_back(out.bytes());
  }
  work.share(texts);
  for (std::size_t first = 0; first < pieces.size(); first += per_task) {
    ArchiveReader in(texts[first / per_task], "another process");
    for (std::size_t i = first; i < first + per_task; ++i) pieces[i] = unpack(in);
  }
}

}  // namespace galvani
