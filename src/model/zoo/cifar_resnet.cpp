// The thin residual networks for CIFAR-10 of He et al. 2016, section 4.2.
#include "model/zoo/families.h"

namespace galvani::zoo {
namespace {

// He et al. name the shortcuts that change the shape: A pads with zeros, B projects.
Value shortcut(GraphBuilder& net, const std::string& kind, const std::string& name, const Value& x,
               std::int64_t channels, std::int64_t stride, bool bias) {
  if (kind == "A") {
    std::int64_t missing = channels - x.shape[0];
    Value thinned = net.subsample(name + ".subsample", x, stride);
    return net.pad_channels(name + ".pad", thinned, missing / 2, missing - missing / 2);
  }
  ConvOptions projection{1, stride, 0, 1, bias};
  if (kind == "B") return net.conv_bn(name + ".0", name + ".1", x, channels, projection);
  return net.conv(name + ".0", x, channels, projection);
}

Value cifar_block(GraphBuilder& net, const Options& options, const std::string& name, const Value& x,
                  std::int64_t channels, std::int64_t stride) {
  bool bias = options.flag("bias");
  Value y = net.conv_bn(name + ".conv1", name + ".bn1", x, channels, {3, stride, 1, 1, bias});
  y = net.relu(name + ".relu1", y);
  y = net.conv_bn(name + ".conv2", name + ".bn2", y, channels, {3, 1, 1, 1, bias});
  Value straight =
      stride == 1 ? x : shortcut(net, options.text("shortcut"), name + ".shortcut", x, channels, stride, bias);
  return net.relu(name + ".relu2", net.add(name + ".add", y, straight));
}

Value lay_out_cifar(GraphBuilder& net, const Options& options, int blocks_a_stage) {
  net.require_image(4);
  std::int64_t width = options.integer("width");
  Value x = net.conv_bn("conv1", "bn1", net.input(), width, {3, 1, 1, 1, options.flag("bias")});
  x = net.relu("relu", x);
  for (int stage = 0; stage < 3; ++stage) {
    for (int i = 0; i < blocks_a_stage; ++i) {
      std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      x = cifar_block(net, options, name, x, width << stage, stage > 0 && i == 0 ? 2 : 1);
    }
  }
  x = net.flatten("flatten", net.global_avg_pool("avgpool", x));
  return net.dense("linear", x, net.classes());
}

Entry cifar_entry(int depth) {
  int blocks_a_stage = (depth - 2) / 6;
  OptionSchema schema = {
      {"width", std::int64_t{16}, "channels of the first stage", 1, 1024, {}},
      {"shortcut",
       std::string("A"),
       "where the shape changes: A (zero channels), B (1x1 convolution and batch norm), conv (1x1 convolution alone)",
       {},
       {},
       {"A", "B", "conv"}},
      {"bias", false, "convolutions have a bias, as in Keras's example", {}, {}, {}},
  };
  std::string number = std::to_string(depth);
  return architecture(
      "resnet" + number,
      "ResNet-" + number + " for small images: 3 stages of " + std::to_string(blocks_a_stage) + " blocks", schema,
      [blocks_a_stage](GraphBuilder& net, const Options& options) {
        return lay_out_cifar(net, options, blocks_a_stage);
      });
}

}  // namespace

std::vector<Entry> cifar_resnet_architectures() {
  return {cifar_entry(20), cifar_entry(32), cifar_entry(56)};
}

}  // namespace galvani::zoo
