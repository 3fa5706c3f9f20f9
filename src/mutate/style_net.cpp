// A user's own style network: an ONNX file that turns an image into an image.
#include <ATen/ATen.h>
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <opencv2/imgproc.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/model/network.h"
#include "mutate/families.h"
#include "mutate/planes.h"
#include "mutate/tone.h"

namespace galvani::mutate {
namespace {

namespace fs = std::filesystem;

enum OutputRange { bytes, unit, signed_unit };

// A network gives a row of numbers an image; flattening makes an image such a row.
std::string flattened(const fs::path& path) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 31;
  onnx::ModelProto model;
  if (!model.ParseFromString(read_file(path, kLimit)) || !model.has_graph() || model.graph().output_size() != 1)
    bad_input("{}: is not an ONNX network of one output", path.string());
  onnx::GraphProto& graph = *model.mutable_graph();
  const std::string row = "galvani_style_row";
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Flatten");
  node.set_name(row);
  node.add_input(graph.output(0).name());
  node.add_output(row);
  onnx::ValueInfoProto output;
  output.set_name(row);
  output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  *graph.mutable_output(0) = output;
  return model.SerializeAsString();
}

class StyleNet : public ImageMutator {
 public:
  StyleNet(const std::string& path, const std::vector<std::int64_t>& shape) : ImageMutator({MutatorGroup::style}) {
    if (path.empty()) return;
    Network::Options options;
    options.execution = {1, false};
    // Its numbers are an image's.
    options.flags.task = "classes";
    options.flags.head = "logits";
    if (shape.size() == 3) options.data_shape = {3, shape[1], shape[2]};
    network_ = Network::from_onnx(flattened(path), path, options);
    ModelCard card = network_->card();
    if (fs::path toml = fs::path(path).replace_extension(".toml"); fs::is_regular_file(toml)) {
      card.override_with_toml(toml);
      network_->set_card(card);
    }
    const std::vector<std::int64_t>& in = network_->info().input;
    inner_ = {static_cast<int>(in[0]), static_cast<int>(in[1]), static_cast<int>(in[2])};
    bool image_to_image = network_->info().classes == static_cast<std::int64_t>(inner_.bytes());
    if ((inner_.channels != 1 && inner_.channels != 3) || !image_to_image)
      bad_input("{}: makes {} numbers of an image of {}x{}x{}, so it is no style network", path,
                network_->info().classes, in[0], in[1], in[2]);
  }

  std::string files_sha256() const override {
    return network_ ? sha256(network_->info().sha256 + network_->card().preprocess.str()) : "";
  }
  std::string missing() const override { return network_ ? "" : "needs a network: style-net:model=path.onnx"; }

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    at::Tensor input = at::empty({1, inner_.channels, inner_.height, inner_.width}, at::kByte);
    for (int c = 0; c < inner_.channels; ++c) {
      cv::Mat to = plane_of(input.data_ptr<std::uint8_t>(), inner_, c);
      // A gray image goes into every channel; a gray network sees the green of a coloured one.
      int from = shape.channels == 1 ? 0 : inner_.channels == 1 ? 1 : c;
      cv::resize(plane_of(in, shape, from), to, to.size(), 0, 0, cv::INTER_AREA);
    }
    Request request;
    request.alone = true;  // the same bits in any company
    at::Tensor row = network_->run(input, request).logits;
    const auto* numbers = row.data_ptr<float>();
    cv::Mat styled;
    for (int c = 0; c < shape.channels; ++c) {
      auto plane = [&](int channel) {
        auto* first = const_cast<float*>(numbers) + static_cast<std::size_t>(channel) * inner_.plane();
        return cv::Mat(inner_.height, inner_.width, CV_32F, first);
      };
      cv::Mat wanted = plane(inner_.channels == 1 ? 0 : c);
      if (shape.channels == 1 && inner_.channels == 3) wanted = (plane(0) + plane(1) + plane(2)) / 3;
      cv::resize(wanted, styled, {shape.width, shape.height}, 0, 0, cv::INTER_LINEAR);
      std::size_t first = static_cast<std::size_t>(c) * shape.plane();
      for (std::size_t i = 0; i < shape.plane(); ++i) {
        double value = in[first + i];
        double style = styled.ptr<float>(0)[i];
        if (v[1] == unit) style *= 255;
        if (v[1] == signed_unit) style = (style + 1) * 127.5;
        out[first + i] = std::isfinite(style) ? to_byte(value + v[0] * (style - value)) : in[first + i];
      }
    }
  }

  std::unique_ptr<Network> network_;
  ImageShape inner_;
};

}  // namespace

Made make_style_net(const Options& options, const MutationContext& context) {
  return std::make_unique<StyleNet>(options.text("model"), context.type.shape);
}

}  // namespace galvani::mutate
