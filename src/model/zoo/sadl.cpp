// The networks of SADL (Kim et al. 2019) as later studies ran them on SVHN, with batch norm behind every ReLU.
#include "model/zoo/families.h"

namespace galvani::zoo {
namespace {

struct SadlSizes {
  std::vector<std::int64_t> blocks;  // channels of two convolutions and a halving each
  bool same_padding;
  std::vector<std::int64_t> hidden;
};

Value lay_out_sadl(GraphBuilder& net, const Options& options, const SadlSizes& sizes) {
  net.require_image(sizes.same_padding ? std::int64_t{1} << sizes.blocks.size() : 6);
  double ratio = options.real("dropout");
  int layer = 0;
  auto activate = [&](const Value& x) {
    Value result = net.relu("relu" + std::to_string(layer), x);
    return options.flag("bn") ? net.batch_norm("bn" + std::to_string(layer), result) : result;
  };

  Value x = net.input();
  int block = 0;
  for (std::int64_t channels : sizes.blocks) {
    for (int i = 0; i < 2; ++i) {
      ++layer;
      x = activate(net.conv("conv" + std::to_string(layer), x, channels, {3, 1, sizes.same_padding ? 1 : 0}));
    }
    x = net.max_pool("pool" + std::to_string(++block), x, 2, 2);
  }
  x = net.dropout("dropout1", net.flatten("flatten", x), ratio);
  int dense = 1;
  for (std::int64_t features : sizes.hidden) {
    ++layer;
    x = activate(net.dense("fc" + std::to_string(dense++), x, features));
    x = net.dropout("dropout" + std::to_string(dense), x, ratio);
  }
  return net.dense("fc" + std::to_string(dense), x, net.classes());
}

Entry sadl_entry(const std::string& name, const std::string& help, const SadlSizes& sizes) {
  OptionSchema schema = {{"bn", true, "batch norm behind every ReLU; the nets of the SADL paper have none", {}, {}, {}},
                         {"dropout", 0.5, "share of features dropped in training", 0, 0.95, {}}};
  return architecture(name, help, schema,
                      [sizes](GraphBuilder& net, const Options& options) { return lay_out_sadl(net, options, sizes); });
}

}  // namespace

std::vector<Entry> sadl_architectures() {
  return {
      sadl_entry("sadl1", "SADL-1: 2 convolutions of 64, dense 512 and 128 (SVHN)", {{64}, false, {512, 128}}),
      sadl_entry("sadl2", "SADL-2: 2 convolutions of 64, dense 128 (SADL's MNIST net)", {{64}, false, {128}}),
      sadl_entry("sadl3", "SADL-3: 6 convolutions of 32 to 128, dense 1024 and 512 (SADL's CIFAR-10 net)",
                 {{32, 64, 128}, true, {1024, 512}}),
  };
}

}  // namespace galvani::zoo
