// Networks that tell speakers or words apart, from samples to scores: the front end is part of them.
#include <array>

#include "model/zoo/families.h"

namespace galvani::zoo {
namespace {

// Windows of 25 ms every 10 ms that must be there.
constexpr std::int64_t kLeastFrames = 40;

OptionInfo mels_option(std::int64_t usual) {
  return {"mels", usual, "bands of the front end", 8, 256, {}};
}

Value start(GraphBuilder& net, const Options& options) {
  net.require_sound(net.rate() * (kLeastFrames + 2) / 100);
  Value mel = net.log_mel("logmel", net.input(), options.integer("mels"));
  // Brings every band to the same scale, with what training has seen of it.
  return net.batch_norm("logmel_bn", mel);
}

// AudioNet (Becker et al. 2018) as attacks on speaker recognition use it: convolutions over time, halved after each.
Value lay_out_audionet(GraphBuilder& net, const Options& options) {
  static constexpr std::array<std::int64_t, 7> kWidths = {64, 128, 128, 128, 128, 64, 32};
  Value x = start(net, options);
  int layer = 1;
  for (std::int64_t width : kWidths) {
    std::string number = std::to_string(layer++);
    x = net.conv_bn("conv" + number, "bn" + number, x, width, {3, 1, 1, 1, false});
    x = net.relu("relu" + number, x);
    if (x.shape[1] >= 4 && layer <= 6) x = net.max_pool("pool" + number, x, 2, 2);
  }
  x = net.flatten("flatten", net.global_avg_pool("avgpool", x));
  return net.dense("fc", x, net.classes());
}

Value sound_block(GraphBuilder& net, const std::string& name, const Value& x, std::int64_t width, std::int64_t stride,
                  double clip) {
  auto act = [&](const std::string& own, const Value& v) {
    return clip > 0 ? net.clipped_relu(own, v, clip) : net.relu(own, v);
  };
  Value y = act(name + ".relu1", net.conv_bn(name + ".conv1", name + ".bn1", x, width, {3, stride, 1, 1, false}));
  y = net.conv_bn(name + ".conv2", name + ".bn2", y, width, {3, 1, 1, 1, false});
  Value straight = x;
  if (x.shape != y.shape)
    straight = net.conv_bn(name + ".downsample.0", name + ".downsample.1", x, width, {1, stride, 0, 1, false});
  return act(name + ".relu2", net.add(name + ".add", y, straight));
}

// ResNet-34 over bands and time, as on spectrograms; the first layer halves both.
Value lay_out_sound_resnet(GraphBuilder& net, const Options& options) {
  static constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};
  std::int64_t width = options.integer("width");
  Value x = net.as_map("map", start(net, options));
  x = net.relu("relu", net.conv_bn("conv1", "bn1", x, width, {7, 2, 3, 1, false}));
  x = net.max_pool("maxpool", x, 3, 2, 1);
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage) {
    for (int i = 0; i < kBlocks[stage]; ++i) {
      std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      x = sound_block(net, name, x, width << stage, stage > 0 && i == 0 ? 2 : 1, 0);
    }
  }
  x = net.flatten("flatten", net.global_avg_pool("avgpool", x));
  return net.dense("fc", x, net.classes());
}

// Deep Speaker (Li et al. 2017): stages of a convolution of 5 with stride 2 and a residual block, ReLU clipped at 20,
// the mean over time, an embedding; scores in place of the triplet loss.
Value lay_out_deep_speaker(GraphBuilder& net, const Options& options) {
  constexpr double kClip = 20;
  std::int64_t width = options.integer("width");
  Value x = net.as_map("map", start(net, options));
  for (int stage = 0; stage < 4; ++stage) {
    std::string name = "stage" + std::to_string(stage + 1);
    x = net.conv_bn(name + ".conv", name + ".bn", x, width << stage, {5, 2, 2, 1, false});
    x = net.clipped_relu(name + ".relu", x, kClip);
    x = sound_block(net, name + ".block", x, width << stage, 1, kClip);
  }
  // Bands stay apart while time is averaged.
  x = net.rows_as_channels("bands", x);
  x = net.flatten("flatten", net.global_avg_pool("time", x));
  x = net.dense("embedding", x, options.integer("embedding"));
  return net.dense("fc", x, net.classes());
}

}  // namespace

std::vector<Entry> sound_architectures() {
  OptionInfo width{"width", std::int64_t{16}, "channels of the first stage", 1, 1024, {}};
  return {
      architecture("audionet", "AudioNet: seven convolutions over time, for sounds", {mels_option(32)},
                   lay_out_audionet),
      architecture("resnet34-sound", "ResNet-34 on the spectrogram of sounds; width=64 is the original's",
                   {mels_option(64), width}, lay_out_sound_resnet),
      architecture("deep-speaker", "Deep Speaker, residual, for sounds; width=64 and embedding=512 are the original's",
                   {mels_option(64), width, {"embedding", std::int64_t{128}, "features of a speaker", 1, 65536, {}}},
                   lay_out_deep_speaker),
  };
}

}  // namespace galvani::zoo
