// CycleGAN (Zhu et al. 2017), sized by the image.
#include "galvani/model/translator.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "galvani/base/error.h"
#include "model/zoo/builder.h"

namespace galvani {
namespace {

using zoo::GraphBuilder;
using zoo::Value;

constexpr std::int64_t kLeastSide = 8;

// Lays a translator out behind `x`; names begin with `prefix`.
using TranslatorLayers =
    std::function<Value(GraphBuilder& net, const Options& options, const std::string& prefix, const Value& x)>;

// Halvings that leave about 8 pixels: two of 28 or 32, four of 128.
std::int64_t halvings(const GraphBuilder& net) {
  double room = std::log2(static_cast<double>(net.smaller_side()) / 8);
  return std::clamp<std::int64_t>(std::lround(room), 1, 4);
}

Value normalised(GraphBuilder& net, const std::string& name, const Value& x, std::int64_t channels,
                 const zoo::ConvOptions& options) {
  return net.instance_norm(name + ".norm", net.conv(name, x, channels, options));
}

Value image_of(GraphBuilder& net, const std::string& prefix, const Value& x, std::int64_t kernel) {
  return net.tanh(prefix + "tanh",
                  net.conv(prefix + "last", x, net.input().shape[0], {kernel, 1, kernel / 2, 1, true, true}));
}

// Johnson's network with few residual blocks. Dropout lies inside them.
Value lay_out_resnet(GraphBuilder& net, const Options& options, const std::string& prefix, const Value& input) {
  std::int64_t width = options.integer("width");
  std::int64_t levels = net.smaller_side() < 16 ? 1 : 2;
  Value x = net.relu(prefix + "first.relu", normalised(net, prefix + "first", input, width, {5, 1, 2}));
  std::vector<Value> before;
  for (std::int64_t level = 1; level <= levels; ++level) {
    before.push_back(x);
    std::string name = prefix + "down" + std::to_string(level);
    x = net.relu(name + ".relu", normalised(net, name, x, x.shape[0] * 2, {3, 2, 1}));
  }
  for (std::int64_t block = 1; block <= options.integer("blocks"); ++block) {
    std::string name = prefix + "block" + std::to_string(block);
    Value y = net.relu(name + ".relu", normalised(net, name + ".conv1", x, x.shape[0], {3, 1, 1}));
    y = net.dropout(name + ".dropout", y, options.real("dropout"));
    x = net.add(name + ".add", normalised(net, name + ".conv2", y, x.shape[0], {3, 1, 1}), x);
  }
  for (std::int64_t level = levels; level >= 1; --level) {
    const Value& like = before[static_cast<std::size_t>(level - 1)];
    std::string name = prefix + "up" + std::to_string(level);
    x = net.enlarge(name + ".enlarge", x, like.shape[1], like.shape[2]);
    x = net.relu(name + ".relu", normalised(net, name, x, like.shape[0], {3, 1, 1}));
  }
  return image_of(net, prefix, x, 5);
}

// The CAGFuzz authors' network: halved by 4x4 windows, enlarged again, each size joined with what came down at it.
Value lay_out_unet(GraphBuilder& net, const Options& options, const std::string& prefix, const Value& input) {
  std::int64_t levels = halvings(net);
  Value x = input;
  std::vector<Value> before;
  for (std::int64_t level = 1; level <= levels; ++level) {
    before.push_back(x);
    std::string name = prefix + "down" + std::to_string(level);
    std::int64_t channels = options.integer("width") << (level - 1);
    x = net.leaky_relu(name + ".relu", net.conv(name, x, channels, {4, 2, 1}));
    x = net.instance_norm(name + ".norm", x);
  }
  x = net.dropout(prefix + "dropout", x, options.real("dropout"));
  for (std::int64_t level = levels; level >= 2; --level) {
    const Value& like = before[static_cast<std::size_t>(level - 1)];
    std::string name = prefix + "up" + std::to_string(level);
    x = net.enlarge(name + ".enlarge", x, like.shape[1], like.shape[2]);
    x = net.relu(name + ".relu", net.conv(name, x, like.shape[0], {3, 1, 1}));
    x = net.concat(name + ".join", net.instance_norm(name + ".norm", x), like);
  }
  x = net.enlarge(prefix + "up1.enlarge", x, input.shape[1], input.shape[2]);
  return image_of(net, prefix, x, 5);
}

TranslatorRegistry::Entry translator_entry(const std::string& name, const std::string& help, const OptionSchema& schema,
                                           const TranslatorLayers& layers) {
  return {name, help, schema, [name, layers](const Options& options, const TranslatorRequest& request) {
            GraphBuilder net(name, request.shape, request.rng);
            net.require_image(kLeastSide);
            if (request.prefixes.empty() || request.prefixes.size() > 2)
              fail(ErrorCode::internal, "{} translators in a cycle", request.prefixes.size());
            auto lay_out = [&](std::size_t which, const Value& x) {
              return layers(net, options, request.prefixes[which], x);
            };
            Value made = lay_out(0, net.input());
            if (request.prefixes.size() == 1) return net.finish_maps({{made, kExample}}, options.str());
            Value there_and_back = lay_out(1, made);
            Value domain = net.dense("domain", net.flatten("domain.pixels", net.input()), 1);
            net.share_weights(".of_second");
            Value made_of_second = lay_out(1, net.input());
            return net.finish_maps({{there_and_back, kExample},
                                    {made, kTransformed},
                                    {lay_out(0, made_of_second), kExampleOfSecond},
                                    {made_of_second, kTransformedOfSecond},
                                    {domain, kDomainScore}},
                                   options.str());
          }};
}

}  // namespace

const TranslatorRegistry& translators() {
  const OptionInfo dropout = {"dropout", 0.2,  "share of values dropped, in training and while examples are made",
                              0,         0.95, {}};
  static const TranslatorRegistry registry(
      "translator",
      {translator_entry("resnet", "halved twice, residual blocks, enlarged again",
                        {{"width", std::int64_t{16}, "channels of the first layer", 1, 1024, {}},
                         {"blocks", std::int64_t{2}, "residual blocks", 1, 64, {}},
                         dropout},
                        lay_out_resnet),
       translator_entry("unet", "halved to about 8 pixels, enlarged again, each size joined with what came down at it",
                        {{"width", std::int64_t{32}, "channels of the first layer", 1, 1024, {}}, dropout},
                        lay_out_unet)});
  return registry;
}

std::string critic_onnx(const ArchitectureShape& shape, std::int64_t width, const std::string& prefix, const Rng& rng) {
  GraphBuilder net("critic", shape, rng);
  net.require_image(kLeastSide);
  Value x = net.input();
  for (std::int64_t level = 1; level <= halvings(net); ++level) {
    std::string name = prefix + "down" + std::to_string(level);
    std::int64_t channels = width << (level - 1);
    x = level == 1 ? net.conv(name, x, channels, {4, 2, 1}) : normalised(net, name, x, channels, {4, 2, 1});
    x = net.leaky_relu(name + ".relu", x);
  }
  // Scores of images that it knows nothing of yet shall be small.
  x = net.conv(prefix + "scores", x, 1, {3, 1, 1, 1, true, true});
  return net.finish_maps({{x, "scores_of_patches"}}, "critic:width=" + std::to_string(width));
}

}  // namespace galvani
