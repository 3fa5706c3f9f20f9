#include "model_flags.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/model/inputs.h"

namespace galvani::cli {
namespace {

constexpr std::uint64_t kMaxClassFile = std::uint64_t{16} << 20;

// One thread at a time calls verbs.
std::map<std::string, std::shared_ptr<Network>>& lent_networks() {
  static std::map<std::string, std::shared_ptr<Network>> table;
  return table;
}

}  // namespace

void ModelFlags::add_to(Verb& verb, bool required) {
  Option option = verb.add_option("model", model, "ONNX or TorchScript file");
  if (required) option.required();
  add_options(verb);
}

void ModelFlags::add_options(Verb& verb) {
  add_preprocessing(verb);
  add_data_flags(verb);
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
  verb.add_option(
          "--input", flags.input,
          "what an input is, where the file leaves it open: channels,height,width, or channels,length of a sound")
      .group(group);
  verb.add_option("--head", flags.head,
                  "what the model's output is: logits, softmax, log-softmax or sigmoid (default: found out)")
      .check(OneOf{{"logits", "softmax", "log-softmax", "sigmoid"}})
      .group(group);
  const char* asked = "What the model is asked (default: found from its outputs)";
  verb.add_option("--task", flags.task,
                  "classes, binary (yes or no), multi-label (labels independent of each other) or regression (numbers)")
      .check(OneOf{{"classes", "binary", "multi-label", "regression"}})
      .group(asked);
  verb.add_option("--model-output", flags.output, "the output that counts, by name or number (default: the first)")
      .group(asked);
  verb.add_option("--threshold", flags.threshold, "binary, multi-label: a probability above it is a yes (default: 0.5)")
      .group(asked);
  verb.add_option("--tolerance", flags.tolerance,
                  "regression: an answer that is farther from what is right is a fault (default: a tenth of what is "
                  "right spreads over)")
      .group(asked);
  verb.add_option("--micro-batch", options.micro_batch,
                  "inputs a kernel call sees (default: measured once per model and remembered)")
      .check(Range(1, 4096))
      .group("Common");
  verb.add_flag("--unfused", options.unfused, "run every operator of the model by itself (default: fused where faster)")
      .group("Common");
}

void ModelFlags::add_data_flags(Verb& verb) {
  CardFlags& flags = options.flags;
  const char* group = "Images and labels as they are found";
  verb.add_option("--resize", flags.resize,
                  "images of other sizes: 256 (short side), exact, fit or pad (default: the model's card, else fit)")
      .group(group);
  verb.add_option("--crop", flags.crop, "centre to cut out after --resize, such as 224").group(group);
  verb.add_option("--rate", flags.rate,
                  "sounds: samples a second that the model takes (default: its card, else the files')")
      .group(group);
  verb.add_option("--classes", flags.classes, "the model's class names: a,b,c or a text file with a line for each")
      .group(group);
  verb.add_option(
          "--label-shift", flags.label_shift,
          "what to add to a label for the model's class: 1 where its class 0 is background, -1 for labels from 1")
      .group(group);
  verb.add_flag("--skip-broken", flags.skip_broken, "leave out files that cannot be read").group(group);
}

ModelAndData load_with_data(ModelFlags& flags, const std::string& spec, const std::string& default_split,
                            bool with_labels) {
  OpenedData opened(spec, default_split);
  std::shared_ptr<Network> network = flags.load(opened.common_type());
  InputNeeds needs = input_needs(*network);
  if (!with_labels) needs.classes = 0;
  DataView data = opened.view(needs);
  settle_head(*network, data);
  if (!with_labels) data.answers.reset();
  settle_task(*network, data);
  if (!with_labels) {
    // Names of so many classes are those of the model, where it has none of its own: a data set's, not a folder's.
    bool of_model = network->card().class_names.empty() && data.classes() == network->info().classes &&
                    !network->info().question.by_reference();
    if (!of_model) data.class_names.clear();
    data.labels = at::full_like(data.labels, Labelled::kUnlabelled);
  }
  return {std::move(network), std::move(data)};
}

LentNetwork::LentNetwork(std::shared_ptr<Network> network) : path_(network->info().path) {
  if (network->identity() != network->info().sha256)
    bad_usage("{}: its weights are not those of the file any more; save it, and load what was saved", path_);
  lent_networks().insert_or_assign(path_, std::move(network));
}

LentNetwork::~LentNetwork() {
  lent_networks().erase(path_);
}

std::shared_ptr<Network> ModelFlags::load(const std::optional<SampleType>& data) {
  auto lent = lent_networks().find(model);
  if (lent == lent_networks().end()) return load_file(data);
  // One that is loaded is as it is: what it would have to be told otherwise is for a network of its own.
  const CardFlags& f = options.flags;
  bool as_it_is = (f.mean + f.deviation + f.range + f.channels + f.layout + f.input + f.head + f.task + f.output +
                   f.threshold + f.tolerance + f.resize + f.crop + f.classes + f.label_shift)
                      .empty() &&
                  !f.skip_broken && !options.unfused && options.micro_batch == 0;
  if (!as_it_is)
    bad_usage("{} is loaded already: what changes how it is run belongs into Network.load, or name the file here",
              model);
  const Execution& wanted = options.execution;
  const Execution& has = lent->second->execution();
  bool runs_so = wanted.micro_batch == 0 || (wanted.micro_batch == has.micro_batch &&
                                             wanted.channels_last == has.channels_last && wanted.fused == has.fused);
  if (!runs_so) return load_file(data);
  if (data) lent->second->read_as_images(data->shape);
  return lent->second;
}

std::unique_ptr<Network> ModelFlags::load_file(const std::optional<SampleType>& data) {
  if (data) options.data_shape = data->shape;
  // A file of names becomes the names, which a record can keep.
  std::string& classes = options.flags.classes;
  std::error_code error;
  if (!classes.empty() && std::filesystem::is_regular_file(classes, error)) {
    classes = read_file(classes, kMaxClassFile);
    if (classes.find('\n') == std::string::npos) classes += '\n';
  }
  return Network::load(model, options);
}

InputNeeds needs_to_look_at(const OpenedData& data, bool skip_broken) {
  constexpr std::int64_t kSide = 224;
  constexpr double kMostSeconds = 60;
  InputNeeds needs;
  needs.intake.skip_broken = skip_broken;
  auto sizes = data.sizes();
  if (sizes.size() < 2) return needs;
  const SampleType& most = sizes[0].first;
  if (most.kind == SampleKind::image) {
    needs.shape = {3, kSide, kSide};
    needs.intake.resize = Intake::Resize::fit;
    return needs;
  }
  // Sounds keep the channels and the rate that most of them have, and the longest its length.
  double longest = 0;
  for (const auto& [type, count] : sizes)
    longest = std::max(longest, static_cast<double>(type.shape[1]) / static_cast<double>(type.rate));
  needs.rate = most.rate;
  needs.shape = {most.shape[0], static_cast<std::int64_t>(
                                    std::ceil(std::min(longest, kMostSeconds) * static_cast<double>(most.rate)))};
  return needs;
}

std::string join_shape(const std::vector<std::int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace galvani::cli
