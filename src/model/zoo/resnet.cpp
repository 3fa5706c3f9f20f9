// The ImageNet residual networks of He et al. 2016, table 1; layers and weights are called as in torchvision.
#include <array>

#include "model/zoo/families.h"

namespace galvani::zoo {
namespace {

struct ResnetSizes {
  std::array<int, 4> blocks;
  bool bottleneck;
};

Value basic_branch(GraphBuilder& net, const std::string& name, Value x, std::int64_t width, std::int64_t stride) {
  x = net.conv_bn(name + ".conv1", name + ".bn1", x, width, {3, stride, 1, 1, false});
  x = net.relu(name + ".relu1", x);
  return net.conv_bn(name + ".conv2", name + ".bn2", x, width, {3, 1, 1, 1, false});
}

// As torchvision, and unlike the paper, the 3x3 convolution has the stride ("v1.5").
Value bottleneck_branch(GraphBuilder& net, const std::string& name, Value x, std::int64_t width, std::int64_t stride) {
  x = net.conv_bn(name + ".conv1", name + ".bn1", x, width, {1, 1, 0, 1, false});
  x = net.relu(name + ".relu1", x);
  x = net.conv_bn(name + ".conv2", name + ".bn2", x, width, {3, stride, 1, 1, false});
  x = net.relu(name + ".relu2", x);
  return net.conv_bn(name + ".conv3", name + ".bn3", x, 4 * width, {1, 1, 0, 1, false});
}

Value resnet_block(GraphBuilder& net, const std::string& name, const Value& x, std::int64_t width, std::int64_t stride,
                   bool bottleneck) {
  Value y = bottleneck ? bottleneck_branch(net, name, x, width, stride) : basic_branch(net, name, x, width, stride);
  Value straight = x;
  if (x.shape != y.shape)
    straight = net.conv_bn(name + ".downsample.0", name + ".downsample.1", x, y.shape[0], {1, stride, 0, 1, false});
  return net.relu(name + (bottleneck ? ".relu3" : ".relu2"), net.add(name + ".add", y, straight));
}

Value lay_out_resnet(GraphBuilder& net, const Options& options, const ResnetSizes& sizes) {
  bool small = cifar_stem(net, options);
  net.require_image(small ? 8 : 32);
  std::int64_t width = options.integer("width");
  ConvOptions stem = small ? ConvOptions{3, 1, 1, 1, false} : ConvOptions{7, 2, 3, 1, false};
  Value x = net.relu("relu", net.conv_bn("conv1", "bn1", net.input(), width, stem));
  if (!small) x = net.max_pool("maxpool", x, 3, 2, 1);
  for (std::size_t stage = 0; stage < sizes.blocks.size(); ++stage) {
    for (int i = 0; i < sizes.blocks[stage]; ++i) {
      std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      x = resnet_block(net, name, x, width << stage, stage > 0 && i == 0 ? 2 : 1, sizes.bottleneck);
    }
  }
  x = net.flatten("flatten", net.global_avg_pool("avgpool", x));
  return net.dense("fc", x, net.classes());
}

Entry resnet_entry(const std::string& name, const std::string& help, const ResnetSizes& sizes) {
  OptionSchema schema = {stem_option(), {"width", std::int64_t{64}, "channels of the first stage", 1, 1024, {}}};
  return architecture(name, help, schema, [sizes](GraphBuilder& net, const Options& options) {
    return lay_out_resnet(net, options, sizes);
  });
}

}  // namespace

std::vector<Entry> resnet_architectures() {
  return {
      resnet_entry("resnet18", "ResNet-18: 8 basic blocks in 4 stages", {{2, 2, 2, 2}, false}),
      resnet_entry("resnet34", "ResNet-34: 16 basic blocks in 4 stages", {{3, 4, 6, 3}, false}),
      resnet_entry("resnet50", "ResNet-50: 16 bottleneck blocks in 4 stages", {{3, 4, 6, 3}, true}),
  };
}

}  // namespace galvani::zoo
