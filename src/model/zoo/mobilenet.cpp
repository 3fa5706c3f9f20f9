// Sandler et al. 2018; layers and weights are called as in torchvision.
#include <algorithm>

#include "model/zoo/families.h"

namespace galvani::zoo {
namespace {

struct Stage {
  std::int64_t expansion;
  std::int64_t channels;
  int blocks;
  std::int64_t stride;
};

constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
constexpr std::int64_t kStemChannels = 32;
constexpr std::int64_t kLastChannels = 1280;

// The nearest multiple of 8, but never more than a tenth below.
std::int64_t scaled(std::int64_t channels, double width) {
  double wanted = static_cast<double>(channels) * width;
  std::int64_t rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(wanted + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * wanted ? rounded + 8 : rounded;
}

Value conv_bn_relu6(GraphBuilder& net, const std::string& name, const Value& x, std::int64_t channels,
                    const ConvOptions& options) {
  return net.relu6(name + ".2", net.conv_bn(name + ".0", name + ".1", x, channels, options));
}

Value inverted_residual(GraphBuilder& net, const std::string& name, const Value& x, std::int64_t expansion,
                        std::int64_t channels, std::int64_t stride) {
  int index = 0;
  auto part = [&] { return name + ".conv." + std::to_string(index++); };
  std::int64_t hidden = x.shape[0] * expansion;
  Value y = x;
  if (expansion != 1) y = conv_bn_relu6(net, part(), y, hidden, {1, 1, 0, 1, false});
  y = conv_bn_relu6(net, part(), y, hidden, {3, stride, 1, hidden, false});
  y = net.conv(part(), y, channels, {1, 1, 0, 1, false});
  y = net.batch_norm(part(), y);
  return x.shape == y.shape && stride == 1 ? net.add(name + ".add", x, y) : y;
}

Value lay_out_mobilenet(GraphBuilder& net, const Options& options) {
  bool small = cifar_stem(net, options);
  net.require_image(small ? 8 : 32);
  double width = options.real("width");
  int index = 0;
  auto feature = [&] { return "features." + std::to_string(index++); };
  Value x = conv_bn_relu6(net, feature(), net.input(), scaled(kStemChannels, width), {3, small ? 1 : 2, 1, 1, false});
  for (const Stage& stage : kStages) {
    for (int i = 0; i < stage.blocks; ++i) {
      bool shrinks = i == 0 && !(small && &stage == &kStages[1]);
      x = inverted_residual(net, feature(), x, stage.expansion, scaled(stage.channels, width),
                            shrinks ? stage.stride : 1);
    }
  }
  x = conv_bn_relu6(net, feature(), x, scaled(kLastChannels, std::max(1.0, width)), {1, 1, 0, 1, false});
  x = net.flatten("flatten", net.global_avg_pool("avgpool", x));
  return net.dense("classifier.1", net.dropout("classifier.0", x, options.real("dropout")), net.classes());
}

}  // namespace

std::vector<Entry> mobilenet_architectures() {
  OptionSchema schema = {stem_option(),
                         {"width", 1.0, "multiplies the channels of every layer", 0.1, 4, {}},
                         {"dropout", 0.2, "share of features dropped in training", 0, 0.95, {}}};
  return {architecture("mobilenet_v2", "MobileNet v2: 17 inverted residual blocks", schema, lay_out_mobilenet)};
}

}  // namespace galvani::zoo
