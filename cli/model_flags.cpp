#include "model_flags.h"

#include <fmt/format.h>

namespace galvani::cli {

void ModelFlags::add_to(Verb& verb, bool required) {
  Option option = verb.add_option("model", model, "ONNX or TorchScript file");
  if (required) option.required();
  add_preprocessing(verb);
}

void ModelFlags::add_preprocessing(Verb& verb) {
  CardFlags& flags = options.flags;
  const char* group = "Preprocessing (overrides what the model says)";
  verb.add_option("--range", flags.range, "what bytes 0..255 become before mean and std, such as 0..1").group(group);
  verb.add_option("--mean", flags.mean, "mean to subtract: one number, or one per channel as .485,.456,.406")
      .group(group);
  verb.add_option("--std", flags.deviation, "standard deviation to divide by").group(group);
  verb.add_option("--channels", flags.channels, "channel order: rgb or bgr").group(group);
  verb.add_option("--layout", flags.layout, "input layout: nchw or nhwc").group(group);
  verb.add_option("--input", flags.input, "input shape as channels,height,width, for a TorchScript file").group(group);
  verb.add_option("--micro-batch", options.micro_batch,
                  "inputs a kernel call sees (default: measured once per model and remembered)")
      .check(Range(1, 4096))
      .group("Common");
  verb.add_flag("--unfused", options.unfused, "run every operator of the model by itself (default: fused where faster)")
      .group("Common");
}

std::unique_ptr<Network> ModelFlags::load(const std::optional<SampleType>& data) {
  if (data) options.data_shape = data->shape;
  return Network::load(model, options);
}

std::string join_shape(const std::vector<std::int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace galvani::cli
