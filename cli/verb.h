// What the verbs of the command line share. A verb is one file that defines one add_..._verb function.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "flags.h"
#include "galvani/base/confine.h"
#include "galvani/base/json.h"

namespace at {
class Tensor;
}

namespace galvani::cli {

// Columns of a result, by name.
using ResultArrays = std::vector<std::pair<std::string, at::Tensor>>;

// A program that has verbs within itself takes here what they would print.
struct ResultTaker {
  std::function<void(const Json& document, const ResultArrays& arrays)> result;
  std::function<void(const Json& news)> news;
};

struct Common {
  std::uint64_t seed = 0;
  int threads = 0;  // 0: one per core
  bool json = false;
  bool json_lines = false;  // as it goes on; then json is set, too
  bool quiet = false;
  bool verbose = false;
  int exit_code = 0;  // a verb sets 1 when the gate it was asked for failed
  // Null: standard output does. Otherwise the process is somebody else's: no wall around it, and its log, its malloc
  // and its threads are theirs to set up. Then json is set.
  const ResultTaker* taker = nullptr;

  // What a verb found. REQUIRES json.
  void give(const Json& document, int indent = 1) const;
  // The same with columns, for who takes them. REQUIRES a taker.
  void give(const Json& document, const ResultArrays& arrays) const;
  // What is new as it goes on. REQUIRES json_lines.
  void tell(const Json& news) const;
};

// A subcommand with the options every verb has; `examples` is shown at the end of its --help.
Verb& make_verb(Verb& parent, Common& common, const std::string& name, const std::string& help,
                const std::string& examples);

// For a verb whose work has news as it goes on: --json is one document at the end, --json-lines a stream.
void has_news(Verb& verb, Common& common);

// For a verb that runs models: from then on the process may write what `outputs` names, asked once the options are
// known, and the cache, and nothing else (docs/security.md). Empty paths do not count.
// Of many the first alone may write, unless `outputs` asks of each what it may.
enum class Processes { one, many, many_that_write };
void runs_models(Verb& verb, Common& common, std::function<Confinement()> outputs,
                 Processes processes = Processes::one);

// All of them.
void add_verbs(Verb& app, Common& common);

// Text for people on standard output, at once. Names from files may be in it: nothing in it drives a terminal.
void say_text(std::string_view text);
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_text(fmt::format(format, std::forward<Args>(args)...));
}

void add_attack_verb(Verb& app, Common& common);
void add_calibrate_verb(Verb& app, Common& common);
void add_check_verb(Verb& app, Common& common);
void add_compare_verb(Verb& app, Common& common);
void add_cover_verb(Verb& app, Common& common);
void add_data_verb(Verb& app, Common& common);
void add_describe_verb(Verb& app, Common& common);
void add_excite_verb(Verb& app, Common& common);
void add_explain_verb(Verb& app, Common& common);
void add_export_verb(Verb& app, Common& common);
void add_faults_verb(Verb& app, Common& common);
void add_features_verb(Verb& app, Common& common);
void add_fuzz_verb(Verb& app, Common& common);
void add_merge_verb(Verb& app, Common& common);
void add_repair_verb(Verb& app, Common& common);
void add_replay_verb(Verb& app, Common& common);
void add_report_verb(Verb& app, Common& common);
void add_select_verb(Verb& app, Common& common);
void add_stats_verb(Verb& app, Common& common);
void add_train_captioner_verb(Verb& app, Common& common);
void add_train_verb(Verb& app, Common& common);
void add_train_generator_verb(Verb& app, Common& common);
void add_diff_verb(Verb& app, Common& common);
void add_transfer_verb(Verb& app, Common& common);
void add_inspect_verb(Verb& app, Common& common);
void add_model_verb(Verb& app, Common& common);
void add_mutate_verb(Verb& app, Common& common);
void add_predict_verb(Verb& app, Common& common);
void add_profile_verb(Verb& app, Common& common);
void add_quality_verb(Verb& app, Common& common);
void add_trace_verb(Verb& app, Common& common);

}  // namespace galvani::cli
