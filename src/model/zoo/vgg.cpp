// Simonyan and Zisserman 2015; weights are called as in torchvision.
#include <algorithm>

#include "model/zoo/families.h"

namespace galvani::zoo {
namespace {

std::string classifier(int index) {
  return "classifier." + std::to_string(index);
}

Value features(GraphBuilder& net, bool bn, std::int64_t width, int convs_in_late_blocks) {
  Value x = net.input();
  int index = 0;
  auto next_name = [&index] { return "features." + std::to_string(index++); };
  for (int block = 0; block < 5; ++block) {
    std::int64_t channels = width * std::min(1 << block, 8);
    for (int i = 0; i < (block < 2 ? 2 : convs_in_late_blocks); ++i) {
      x = net.conv(next_name(), x, channels, {3, 1, 1});
      if (bn) x = net.batch_norm(next_name(), x);
      x = net.relu(next_name(), x);
    }
    // What has no room left is not halved any more, so that images below 32 pixels can be read, too.
    std::string pool = next_name();
    if (std::min(x.shape[1], x.shape[2]) >= 2) x = net.max_pool(pool, x, 2, 2);
  }
  return x;
}

Value head(GraphBuilder& net, const Options& options, Value x) {
  std::string kind = options.text("head");
  if (kind == "auto") kind = net.smaller_side() < 64 ? "small" : "large";
  double ratio = options.real("dropout");
  auto normalised_dense = [&](int index, const Value& in, std::int64_t size) {
    Value out = net.dense(classifier(index), in, size);
    return options.flag("head_bn") ? net.batch_norm("classifier.bn" + std::to_string(index), out) : out;
  };

  if (kind != "large") x = net.global_avg_pool("avgpool", x);
  x = net.flatten("flatten", x);
  if (kind == "linear") return normalised_dense(1, net.dropout(classifier(0), x, ratio), net.classes());
  for (int index : {0, 3}) {
    x = net.relu(classifier(index + 1), normalised_dense(index, x, kind == "large" ? 4096 : 512));
    x = net.dropout(classifier(index + 2), x, ratio);
  }
  return normalised_dense(6, x, net.classes());
}

Entry vgg_entry(const std::string& name, const std::string& help, int convs_in_late_blocks) {
  OptionSchema schema = {
      {"bn", false, "batch norm behind every convolution", {}, {}, {}},
      {"head",
       std::string("auto"),
       "linear (pooled, one dense layer), small (pooled, 512-512-classes), large (all pixels, 4096-4096-classes), "
       "auto: small below 64 pixels, else large",
       {},
       {},
       {"auto", "linear", "small", "large"}},
      {"head_bn", false, "batch norm behind every dense layer, the last one too", {}, {}, {}},
      {"dropout", 0.5, "share of features dropped in training", 0, 0.95, {}},
      {"width", std::int64_t{64}, "channels of the first block; the last has eight times as many", 1, 1024, {}},
  };
  return architecture(name, help, schema, [convs_in_late_blocks](GraphBuilder& net, const Options& options) {
    net.require_image(16);
    return head(net, options, features(net, options.flag("bn"), options.integer("width"), convs_in_late_blocks));
  });
}

}  // namespace

std::vector<Entry> vgg_architectures() {
  return {vgg_entry("vgg16", "VGG-16: 13 convolutions in 5 blocks of 64 to 512", 3),
          vgg_entry("vgg19", "VGG-19: 16 convolutions in 5 blocks of 64 to 512", 4)};
}

}  // namespace galvani::zoo
