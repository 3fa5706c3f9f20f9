// LeCun et al. 1998, in the ReLU and max-pooling form that papers on testing networks use.
#include "model/zoo/families.h"

namespace galvani::zoo {
namespace {

struct LenetSizes {
  std::int64_t conv1;
  std::int64_t conv2;
  std::vector<std::int64_t> hidden;
};

Value lay_out_lenet(GraphBuilder& net, const Options& options, const LenetSizes& sizes) {
  const std::string& padding = options.text("padding");
  // LeCun's LeNet-5 reads 32x32; smaller images, such as MNIST's 28x28, get its border as zeros.
  bool bordered = padding == "same" || (padding == "classic" && net.smaller_side() < 32);
  std::int64_t first = bordered ? 2 : 0;
  std::int64_t second = padding == "same" ? 2 : 0;
  // One pixel must be left after window, halving, window, halving.
  net.require_image((2 + 4 - 2 * second) * 2 + 4 - 2 * first);

  Value x = net.relu("relu1", net.conv("conv1", net.input(), sizes.conv1, {5, 1, first}));
  x = net.max_pool("pool1", x, 2, 2);
  x = net.relu("relu2", net.conv("conv2", x, sizes.conv2, {5, 1, second}));
  x = net.flatten("flatten", net.max_pool("pool2", x, 2, 2));
  std::size_t layer = 1;
  for (std::int64_t features : sizes.hidden) {
    x = net.dense("fc" + std::to_string(layer), x, features);
    x = net.relu("relu" + std::to_string(layer + 2), x);
    ++layer;
  }
  return net.dense("fc" + std::to_string(layer), x, net.classes());
}

Entry lenet_entry(const std::string& name, const std::string& help, const std::string& padding,
                  const LenetSizes& sizes) {
  OptionSchema schema = {{"padding",
                          padding,
                          "of the 5x5 convolutions: valid (DeepHunter), same (DeepXplore), "
                          "classic (images below 32 pixels get a border of 2)",
                          {},
                          {},
                          {"valid", "same", "classic"}}};
  return architecture(name, help, schema, [sizes](GraphBuilder& net, const Options& options) {
    return lay_out_lenet(net, options, sizes);
  });
}

}  // namespace

std::vector<Entry> lenet_architectures() {
  return {
      lenet_entry("lenet1", "LeNet-1: convolutions of 4 and 12, no hidden dense layer", "valid", {4, 12, {}}),
      lenet_entry("lenet4", "LeNet-4: convolutions of 6 and 16, dense 84", "valid", {6, 16, {84}}),
      lenet_entry("lenet5", "LeNet-5: convolutions of 6 and 16, dense 120 and 84", "classic", {6, 16, {120, 84}}),
  };
}

}  // namespace galvani::zoo
