#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "answers.h"
#include "galvani/base/error.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/guess.h"
#include "galvani/model/inputs.h"
#include "galvani/model/operators.h"
#include "gate_flags.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct InspectFlags {
  ModelFlags model;
  std::string data;
  bool layers = false;
  bool operators = false;
  bool guess = false;
  bool write = false;
  std::int64_t sample = kGuessSample;
  GateFlags gates;
};

std::string class_label(const Network& network, const Labelled& data, std::int64_t i) {
  return printable(verdict_name(network, data, i), 30);
}

std::vector<std::int64_t> to_vector(const at::Tensor& numbers) {
  const auto* data = numbers.data_ptr<std::int64_t>();
  return {data, data + numbers.numel()};
}

std::int64_t neurons_of(const Network& network, const std::vector<int>& taps) {
  std::int64_t sum = 0;
  for (int i : taps) sum += network.taps()[static_cast<std::size_t>(i)].neurons();
  return sum;
}

Json as_json(Network& network, const std::vector<int>& taps, const std::optional<DataView>& data,
             const std::optional<Evaluation>& evaluation, bool layers) {
  const NetworkInfo& info = network.info();
  Json j = {{"model", info.path},
            {"format", info.format},
            {"sha256", info.sha256},
            {"producer", info.producer},
            {"input", info.input},
            {"input_type", info.number},
            {"classes", info.classes},
            {"parameters", info.parameters},
            {"neurons", neurons_of(network, taps)},
            {"softmax", info.head == Head::softmax || info.head == Head::log_softmax},
            {"head", to_string(info.head)},
            {"task", info.classes > 0 ? Json(to_string(info.question.task)) : Json()},
            {"logits_made", info.logits_made},
            {"preprocess", Json::parse(network.card().to_json())},
            {"preprocess_stated", network.card().preprocess_known},
            {"notes", info.notes}};
  for (const GraphOutput& output : info.outputs)
    j["outputs"].push_back({{"name", output.name}, {"shape", output.shape}});
  j["opset"] = info.format == "onnx" ? Json(info.opset) : Json();
  j["fixed_batch"] = info.fixed_batch > 0 ? Json(info.fixed_batch) : Json();
  j["class_names"] = network.card().class_names;
  j["stated_accuracy"] = network.card().accuracy ? Json(*network.card().accuracy) : Json();
  j["taps"] = Json::array();
  for (int i : taps) {
    const Tap& tap = network.taps()[static_cast<std::size_t>(i)];
    j["taps"].push_back({{"name", tap.name},
                         {"kind", to_string(tap.kind)},
                         {"op", tap.op},
                         {"node", tap.node},
                         {"shape", tap.shape},
                         {"neurons", tap.neurons()},
                         {"units", tap.units()}});
  }
  if (layers) {
    j["layers"] = Json::array();
    for (const Layer& layer : network.layers())
      j["layers"].push_back(
          {{"op", layer.op}, {"name", layer.name}, {"output", layer.output}, {"parameters", layer.parameters}});
  }
  if (evaluation) {
    j["accuracy"] = evaluation->accuracy;
    j["correct"] = evaluation->correct;
    j["images"] = evaluation->images;
    j["data"] = data->name;
    j["reexamined"] = evaluation->reexamined;
    j["confusion"] = Json::array();
    for (std::int64_t r = 0; r < info.classes; ++r) j["confusion"].push_back(to_vector(evaluation->confusion[r]));
    j["not_a_number"] = to_vector(evaluation->not_a_number);
  }
  return j;
}

void print_confusion(const Network& network, const Labelled& data, const Evaluation& evaluation) {
  constexpr std::int64_t kMostColumns = 20;
  std::int64_t classes = network.info().classes;
  auto cell = evaluation.confusion.accessor<std::int64_t, 2>();
  std::vector<std::int64_t> unknown = to_vector(evaluation.not_a_number);
  bool any_unknown = std::any_of(unknown.begin(), unknown.end(), [](std::int64_t n) { return n > 0; });
  auto shown = [](std::int64_t n) { return n == 0 ? "·" : std::to_string(n); };
  if (classes <= kMostColumns) {
    std::vector<std::string> titles = {"true \\ predicted"};
    for (std::int64_t c = 0; c < classes; ++c) titles.push_back(">" + class_label(network, data, c));
    if (any_unknown) titles.push_back(">" + class_label(network, data, kNotANumber));
    titles.emplace_back(">recall");
    Table table(titles);
    for (std::int64_t r = 0; r < classes; ++r) {
      std::vector<std::string> row = {class_label(network, data, r)};
      std::int64_t total = unknown[static_cast<std::size_t>(r)];
      for (std::int64_t c = 0; c < classes; ++c) {
        total += cell[r][c];
        row.push_back(shown(cell[r][c]));
      }
      if (any_unknown) row.push_back(shown(unknown[static_cast<std::size_t>(r)]));
      row.push_back(total == 0
                        ? "-"
                        : fmt::format("{:.1f}%", 100.0 * static_cast<double>(cell[r][r]) / static_cast<double>(total)));
      table.add(row);
    }
    say("\n{}", table.str());
    return;
  }
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> pairs;
  for (std::int64_t r = 0; r < classes; ++r) {
    for (std::int64_t c = 0; c < classes; ++c) {
      if (r != c && cell[r][c] > 0) pairs.emplace_back(-cell[r][c], r, c);
    }
    if (std::int64_t n = unknown[static_cast<std::size_t>(r)]; n > 0) pairs.emplace_back(-n, r, kNotANumber);
  }
  std::sort(pairs.begin(), pairs.end());
  if (pairs.size() > static_cast<std::size_t>(kMostColumns)) pairs.resize(static_cast<std::size_t>(kMostColumns));
  Table table({"true", "predicted", network.info().input.size() == 2 ? ">clips" : ">images"});
  for (const auto& [negative, r, c] : pairs)
    table.add({class_label(network, data, r), class_label(network, data, c), std::to_string(-negative)});
  say("\nmost frequent confusions\n{}", table.str());
}

std::string head_text(const NetworkInfo& info) {
  if (info.head == Head::logits) return "";
  return fmt::format(" ({} at the end; logits are {})", to_string(info.head),
                     info.logits_made ? "made of its output" : "taken before it");
}

void print_text(Network& network, const std::vector<int>& taps, const std::optional<DataView>& data,
                const std::optional<Evaluation>& evaluation, bool layers) {
  const NetworkInfo& info = network.info();
  const ModelCard& card = network.card();
  auto line = [](const std::string& key, const std::string& value) { say("{:<14}{}\n", key, value); };
  line("model", info.path);
  std::string format = info.format == "onnx" ? fmt::format("ONNX, opset {}", info.opset) : "TorchScript";
  line("format", format + (info.producer.empty() ? "" : ", made by " + printable(info.producer)));
  if (!card.architecture.empty()) line("architecture", printable(card.architecture));
  line("input", join_shape(info.input) + (info.input.size() == 2 ? " (sounds)" : "") +
                    (card.rate > 0 ? fmt::format(" at {} Hz", card.rate) : "") +
                    (info.input.size() == 3 && !info.graph_input.empty()
                         ? fmt::format(", to the graph {}{}", join_shape(info.graph_input),
                                       info.graph_input.size() == 1 ? " values" : "")
                         : "") +
                    (info.number != "float32" ? " " + info.number : "") +
                    (info.fixed_batch > 0 ? fmt::format(", batches of {} only", info.fixed_batch) : ""));
  if (info.classes > 0) {
    line("task", task_text(info) + (card.task.empty() ? "" : " (stated)"));
    if (!info.question.by_reference()) line("classes", std::to_string(info.classes) + head_text(info));
    if (info.question.by_reference()) line("outputs", std::to_string(info.question.outputs) + head_text(info));
  }
  for (const GraphOutput& output : info.outputs) {
    if (info.classes == 0) line("output", fmt::format("{} {}", printable(output.name), join_shape(output.shape)));
  }
  line("parameters", format_count(info.parameters));
  line("preprocessing",
       preprocessing_text(network) + (card.preprocess_known ? "" : " (assumed: the file does not say)"));
  if (card.intake.stated() && info.input.size() == 3) line("images", card.intake.str());
  if (!card.source.empty()) line("source", printable(card.source, 200));
  if (!card.licence.empty()) line("licence", printable(card.licence));
  if (card.accuracy)
    line("accuracy", fmt::format("{:.2f}%{} (stated by the model)", *card.accuracy * 100,
                                 card.accuracy_data.empty() ? "" : " on " + printable(card.accuracy_data)));
  line("neurons", fmt::format("{} in {} taps", format_count(neurons_of(network, taps)), taps.size()));
  Table table({"tap", "kind", "operator", "shape", ">neurons", ">units"});
  for (int i : taps) {
    const Tap& tap = network.taps()[static_cast<std::size_t>(i)];
    table.add({printable(tap.name, 60), to_string(tap.kind), tap.op, join_shape(tap.shape), format_count(tap.neurons()),
               format_count(tap.units())});
  }
  say("\n{}", table.str());
  if (layers) {
    Table list({"operator", "name", "output", ">parameters"});
    for (const Layer& layer : network.layers())
      list.add({layer.op, printable(layer.name, 60), join_shape(layer.output),
                layer.parameters > 0 ? format_count(layer.parameters) : ""});
    say("\n{}", list.str());
  }
  if (evaluation) {
    say("\naccuracy {:.2f}% on {} ({} of {})\n", evaluation->accuracy * 100, data->name,
        format_count(evaluation->correct), format_count(evaluation->images));
    print_confusion(network, *data, *evaluation);
  }
}

// Of the class that is recognised least.
double least_recall(const Evaluation& evaluation) {
  double least = 1;
  auto cell = evaluation.confusion.accessor<std::int64_t, 2>();
  std::vector<std::int64_t> unknown = to_vector(evaluation.not_a_number);
  for (std::int64_t r = 0; r < evaluation.confusion.size(0); ++r) {
    std::int64_t total = unknown[static_cast<std::size_t>(r)];
    for (std::int64_t c = 0; c < evaluation.confusion.size(1); ++c) total += cell[r][c];
    if (total > 0) least = std::min(least, static_cast<double>(cell[r][r]) / static_cast<double>(total));
  }
  return least;
}

Figures inspect_figures(const Evaluation& evaluation) {
  return {{"images", static_cast<double>(evaluation.images)},
          {"accuracy", evaluation.accuracy},
          {"least-recall", least_recall(evaluation)},
          {"not-a-number", static_cast<double>(evaluation.not_a_number.sum().item<std::int64_t>())}};
}

Json guess_json(const InspectFlags& flags, const PreprocessGuess& guess, bool written) {
  Json j = {{"model", flags.model.model},
            {"data", guess.data},
            {"images", guess.images},
            {"better_than_chance", guess.better_than_chance},
            {"tied", guess.tied()},
            {"written", written ? Json(card_beside(flags.model.model).string()) : Json()},
            {"label_shift", guess.label_shift},
            {"labels", guess.labels},
            {"graph_takes_bytes", guess.graph_takes_bytes}};
  j["presets"] = Json::array();
  for (const PresetScore& s : guess.scores) {
    ModelCard card;
    card.preprocess = s.preprocess;
    j["presets"].push_back({{"name", s.name},
                            {"preprocess", Json::parse(card.to_json())},
                            {"correct", s.correct},
                            {"accuracy", s.accuracy},
                            {"low", s.low},
                            {"high", s.high},
                            {"loss", s.loss},
                            {"p", s.p},
                            {"tied", s.tied}});
  }
  return j;
}

// The flags that say the same to any verb.
std::string as_flags(const Preprocess& p, std::int64_t label_shift) {
  std::string text = fmt::format("--range {}..{}", p.low, p.high);
  if (!p.mean.empty()) text += fmt::format(" --mean {}", fmt::join(p.mean, ","));
  if (!p.deviation.empty()) text += fmt::format(" --std {}", fmt::join(p.deviation, ","));
  return text + (p.bgr ? " --channels bgr" : "") + (p.channels_last ? " --layout nhwc" : "") +
         (label_shift != 0 ? fmt::format(" --label-shift {}", label_shift) : "");
}

void print_guess(const InspectFlags& flags, const PreprocessGuess& guess, bool written) {
  bool layouts = std::any_of(guess.scores.begin(), guess.scores.end(), [&](const PresetScore& s) {
    return s.preprocess.channels_last != guess.scores[0].preprocess.channels_last;
  });
  std::vector<std::string> titles = {"", "preset", "order"};
  if (layouts) titles.emplace_back("layout");
  for (const char* title : {">accuracy", "95% interval", ">loss"}) titles.emplace_back(title);
  Table table(titles);
  for (const PresetScore& s : guess.scores) {
    bool best = &s == guess.scores.data();
    std::vector<std::string> row = {best ? "*" : s.tied ? "=" : "", s.name, s.preprocess.bgr ? "bgr" : "rgb"};
    if (layouts) row.emplace_back(s.preprocess.channels_last ? "nhwc" : "nchw");
    for (const std::string& cell :
         {fmt::format("{:.1f}%", s.accuracy * 100), fmt::format("{:.1f}% to {:.1f}%", s.low * 100, s.high * 100),
          fmt::format("{:.3f}", s.loss)})
      row.push_back(cell);
    table.add(row);
  }
  const PresetScore& best = guess.scores[0];
  say("{} on {} of {}\n\n{}\n", counted(static_cast<std::int64_t>(guess.scores.size()), "preset"),
      counted(guess.images, "image"), guess.data, table.str());
  if (guess.graph_takes_bytes)
    say("the graph itself scales its input: bytes 0..255 as they are become small numbers in it\n");
  if (guess.label_shift != 0)
    say("the network's class is the label {} {}: so counted, for otherwise hardly any label is right\n",
        guess.label_shift > 0 ? "+" : "-", std::abs(guess.label_shift));
  if (!guess.labels.empty()) say("{}\n", guess.labels);
  if (!guess.better_than_chance && !guess.labels.empty()) return;
  if (!guess.better_than_chance) {
    say("none of them is right more often than chance: the labels of the data may mean other classes than the "
        "model's, or the preprocessing is none of the usual ones\n");
    return;
  }
  say("* {} ({})\n", best.name, best.preprocess.str());
  if (guess.tied() > 0) {
    std::vector<std::string> names;
    for (const PresetScore& s : guess.scores) {
      if (s.tied) names.push_back(fmt::format("{} in {}", s.name, s.preprocess.bgr ? "bgr" : "rgb"));
    }
    constexpr std::size_t kMostNames = 3;
    say("= {} cannot be told from it on these images{}\n",
        names.size() <= kMostNames ? fmt::format("{}", fmt::join(names, ", ")) : fmt::format("{} others", names.size()),
        guess.images < guess.available ? "; --sample takes more of them" : "");
  }
  if (written) {
    say("written to {}, where every verb finds it\n", card_beside(flags.model.model).string());
  } else {
    say("--write puts it beside the model, where every verb finds it; or say {}\n",
        as_flags(best.preprocess, guess.label_shift));
  }
}

void guess(const Common& common, InspectFlags& flags) {
  if (flags.data.empty()) bad_usage("--guess needs labelled images to try presets on: name them with --data");
  if (flags.layers) bad_usage("--guess and --layers are two questions: ask one at a time");
  if (!flags.gates.conditions.empty() || !flags.gates.junit.empty())
    bad_usage("--fail-if judges the model as it is, --guess looks for how it is meant: ask one at a time");
  if (flags.write) refuse_card_beside(flags.model.model);
  OpenedData opened(flags.data, "test");
  CardFlags given = flags.model.options.flags;
  GuessSource source{[&](const std::string& layout) {
                       flags.model.options.flags.layout = layout;
                       return flags.model.load_file(opened.common_type());
                     },
                     [&](const Network& network) { return opened.view(input_needs(network)); }};
  PreprocessGuess guess = guess_preprocessing(source, given, flags.sample);
  bool written = flags.write && guess.better_than_chance;
  const PresetScore& best = guess.scores[0];
  if (written)
    write_card_beside(
        flags.model.model, best.preprocess,
        fmt::format("{}: right for {:.1f}% of {} images of {}, the best of {} presets", printable(best.name),
                    best.accuracy * 100, guess.images, printable(guess.data), guess.scores.size()),
        guess.label_shift);
  if (common.json) {
    common.give(guess_json(flags, guess, written), 2);
  } else {
    print_guess(flags, guess, written);
  }
  if (flags.write && !written)
    bad_input("{}: no preset is right more often than chance on {}, so none was written", flags.model.model,
              guess.data);
}

// Of a network whose answers are no classes.
void inspect_answers(Common& common, const InspectFlags& flags, Network& network, const std::vector<int>& taps,
                     const std::optional<DataView>& data) {
  std::optional<AnswerEvaluation> evaluation;
  if (data) {
    if (!data->answers.defined())
      bad_input("{}: does not say what {} should answer; leave out --data, or give rows of numbers as labels",
                data->name, network.info().path);
    AnswerScoring scoring(network.info().question, data->answers);
    answer_stream(network, *data, "evaluating",
                  [&](const at::Tensor& answers, std::int64_t first) { scoring.add(answers, first); });
    evaluation = scoring.result();
  }
  if (common.json) {
    Json j = as_json(network, taps, data, std::nullopt, flags.layers);
    if (evaluation) {
      j["data"] = data->name;
      j["figures"] = answers_json(network, *evaluation);
    }
    common.give(j, 2);
  } else {
    print_text(network, taps, data, std::nullopt, flags.layers);
    if (evaluation) print_answers(network, *data, *evaluation);
  }
  if (evaluation)
    flags.gates.judge(common, answer_figures(network, *evaluation),
                      {"galvani inspect " + data->name, network.info().path, 0, {}});
}

void inspect(Common& common, InspectFlags& flags) {
  if (flags.operators) {
    say("{}", torchscript_operators_markdown());
    return;
  }
  if (flags.model.model.empty()) bad_usage("name a model to inspect");
  if (flags.guess) return guess(common, flags);
  if (flags.write) bad_usage("--write writes what --guess finds: give both");
  if (flags.data.empty() && !(flags.gates.conditions.empty() && flags.gates.junit.empty()))
    bad_usage("conditions are on the accuracy: name labelled inputs with --data");
  flags.model.options.any_output = true;
  flags.model.options.any_task = true;
  std::shared_ptr<Network> network;
  std::optional<DataView> data;
  if (flags.data.empty()) {
    network = flags.model.load();
  } else {
    ModelAndData loaded = load_with_data(flags.model, flags.data);
    network = std::move(loaded.network);
    data = std::move(loaded.data);
  }
  bool answers = network->info().question.by_reference();
  flags.gates.check(answers ? known_answer_figures(network->info().question)
                            : std::vector<std::string>{"images", "accuracy", "least-recall", "not-a-number"});
  // An encoder or generator may have no layer that is tapped by default; a classifier has.
  bool no_layers = std::none_of(network->taps().begin(), network->taps().end(),
                                [](const Tap& tap) { return tap.kind != TapKind::activation; });
  std::vector<int> taps;
  if (flags.model.taps != "default" || !no_layers) taps = network->select_taps(flags.model.taps);
  if (answers) return inspect_answers(common, flags, *network, taps, data);
  std::optional<Evaluation> evaluation;
  if (data) {
    evaluation = evaluate(*network, *data);
    if (auto warning = suspicious(*network, *evaluation, data->name)) log::warn("{}", *warning);
  }
  if (common.json) {
    common.give(as_json(*network, taps, data, evaluation, flags.layers), 2);
  } else {
    print_text(*network, taps, data, evaluation, flags.layers);
  }
  if (evaluation)
    flags.gates.judge(common, inspect_figures(*evaluation),
                      {"galvani inspect " + data->name, network->info().path, 0, {}});
}

}  // namespace

void add_inspect_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<InspectFlags>();
  Verb& verb = make_verb(app, common, "inspect", "show what is inside a model",
                         "  galvani inspect lenet5.onnx\n"
                         "  galvani inspect lenet5.onnx --data digits:test      accuracy and confusion table too\n"
                         "  galvani inspect foreign.onnx --data photos/ --guess     which preprocessing is right?\n"
                         "  galvani inspect resnet.pt --input 3,224,224 --taps all --layers --json\n"
                         "  galvani inspect audionet.onnx --data speakers:test --fail-if \"least-recall<0.8\"");
  runs_models(verb, common, [flags] {
    return Confinement{{},
                       {flags->write ? card_beside(flags->model.model) : std::filesystem::path(), flags->gates.junit}};
  });
  flags->model.add_to(verb, /*required=*/false);
  verb.add_option("--data", flags->data, "labelled data to measure the accuracy on");
  verb.add_option("--taps", flags->model.taps, "taps to list: default, relu, all, or names and globs").show_default();
  verb.add_flag("--layers", flags->layers, "list every operator too");
  const char* group = "Finding the preprocessing";
  verb.add_flag("--guess", flags->guess, "try the usual preprocessings on the data and show which one is right")
      .group(group);
  verb.add_option("--sample", flags->sample, "how many images of the data to try them on")
      .check(Range(std::int64_t{1}, std::int64_t{1} << 32))
      .show_default()
      .group(group);
  verb.add_flag("--write", flags->write, "write what was found beside the model, as <model>.toml; never over a file")
      .group(group);
  verb.add_flag("--operators", flags->operators, "print which operators a TorchScript file may use");
  flags->gates.add_to(verb, "accuracy<0.9");
  verb.callback([&common, flags] { inspect(common, *flags); });
}

}  // namespace galvani::cli
