#include <fmt/format.h>

#include "galvani/base/error.h"
#include "galvani/base/json.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/semantics/captioner.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct CaptionerFlags {
  CaptionerOptions options;
  std::string folder;
  std::string output;
};

Json training_json(const CaptionerTraining& found, const std::string& output) {
  Json attributes = Json::array();
  for (const CaptionedAttribute& a : found.attributes)
    attributes.push_back({{"name", a.name}, {"right", a.right}, {"usual", a.usual}, {"shuffled", a.shuffled}});
  return {{"output", output},           {"neurons", found.neurons},
          {"held_out", found.held_out}, {"vocabulary", found.vocabulary},
          {"epochs", found.epochs},     {"loss", found.loss},
          {"bleu", found.bleu},         {"bleu_likeliest", found.bleu_likeliest},
          {"same", found.same},         {"bleu_shuffled", found.bleu_shuffled},
          {"seconds", found.seconds},   {"attributes", attributes}};
}

void print_training(const CaptionerTraining& found, const std::string& output) {
  if (!found.attributes.empty()) {
    Table table({"attribute", ">right", ">most frequent answer", ">sentences of others"});
    for (const CaptionedAttribute& a : found.attributes)
      table.add({a.name, fmt::format("{:.1f}%", a.right * 100), fmt::format("{:.1f}%", a.usual * 100),
                 fmt::format("{:.1f}%", a.shuffled * 100)});
    say("{}", table.str());
  }
  say("{} held-out neurons: BLEU {:.3f} (not re-ranked: {:.3f}, sentences of others: {:.3f}), {:.1f}% of the sentences "
      "the "
      "very ones\n",
      format_count(found.held_out), found.bleu, found.bleu_likeliest, found.bleu_shuffled, found.same * 100);
  say("{}: learned from {} neurons, {} words, best after {} epochs, in {}\n", output, format_count(found.neurons),
      found.vocabulary, found.epochs, format_duration(found.seconds));
}

}  // namespace

void add_train_captioner_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<CaptionerFlags>();
  CaptionerOptions& options = flags->options;
  Verb& verb = make_verb(app, common, "train-captioner", "train what puts neurons into sentences",
                         "  galvani train-captioner -o words.captioner\n"
                         "  galvani train-captioner --data annotated/ -o people.captioner\n"
                         "  galvani describe resnet20.onnx --data cifar10:train --describer "
                         "captioner:file=words.captioner");
  verb.add_option("--data", flags->folder,
                  "neurons that people have described: a folder with annotations.csv (layer, unit, summary) and "
                  "images.npy and masks.npy in a folder for each layer (default: scenes drawn with known attributes)");
  verb.add_option("--neurons", options.neurons, "how many are drawn")
      .check(Range<std::int64_t>(20, 10000000))
      .show_default();
  verb.add_option("--count", options.count, "pictures a neuron").check(Range<std::int64_t>(1, 1000)).show_default();
  verb.add_option("--held-out", options.held_out, "share of the neurons that is not learned from, but judged on")
      .check(Range<double>(0.001, 0.9))
      .show_default();
  verb.add_option("--epochs", options.epochs, "at most").check(Range<std::int64_t>(1, 100000)).show_default();
  verb.add_option("--patience", options.patience, "epochs without a better BLEU before it ends")
      .check(Range<std::int64_t>(1, 100000))
      .show_default();
  verb.add_option("--batch", options.batch, "neurons a step").check(Range<std::int64_t>(1, 100000)).show_default();
  verb.add_option("--lr", options.rate, "learning rate").check(Range<double>(0, 10)).show_default();
  verb.add_option("--dropout", options.dropout, "share of values left out in training")
      .check(Range<double>(0, 0.95))
      .show_default();
  verb.add_option("--embedding", options.embedding, "numbers a word")
      .check(Range<std::int64_t>(1, 4096))
      .show_default();
  verb.add_option("--hidden", options.hidden, "width of the decoder")
      .check(Range<std::int64_t>(1, 4096))
      .show_default();
  verb.add_option("--attention", options.attention, "width of its attention")
      .check(Range<std::int64_t>(1, 4096))
      .show_default();
  verb.add_option("--language", options.language, "width of the language model")
      .check(Range<std::int64_t>(1, 4096))
      .show_default();
  verb.add_option("-o,--output", flags->output, "file to write").required();
  verb.callback([&common, flags] {
    flags->options.folder = flags->folder;
    flags->options.seed = common.seed;
    CaptionerTraining found = train_captioner(flags->options, flags->output);
    if (common.json) {
      common.give(training_json(found, flags->output));
    } else {
      print_training(found, flags->output);
    }
  });
}

}  // namespace galvani::cli
