// Networks that read texts, as ONNX: the one that `galvani model get minilm` fetches, and the user's own.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/model/fetched.h"
#include "galvani/model/onnx_graph.h"
#include "semantics/text/builtin.h"
#include "semantics/text/tokenizer.h"

namespace galvani {
namespace {

constexpr std::int64_t kMostTokens = 512;  // tokens, where nothing says otherwise
constexpr std::int64_t kPictureSide = 224;

using Port = OnnxGraph::Port;

// What is asked of a graph's input, by the names that exporters give.
enum class Role { ids, mask, types, positions, picture };

struct TransformerFiles {
  std::string model;
  std::string tokenizer;
  std::string merges;
};

class TransformerEncoder : public TextEncoder {
 public:
  TransformerEncoder(const TransformerFiles& files, std::string pooling, const std::string& output,
                     std::int64_t longest)
      : tokenizer_(Tokenizer::load(files.tokenizer, files.merges)),
        graph_(OnnxGraph::load(files.model)),
        pooling_(std::move(pooling)) {
    find_roles();
    find_output(output);
    longest_ = longest;
    if (longest_ == 0) longest_ = tokenizer_.longest() > 0 ? tokenizer_.longest() : kMostTokens;
    if (length_ > 0) longest_ = std::min(longest_, length_);
    // What it gives for a word says how wide it is, and whether it runs at all.
    width_ = encode_one("a").numel();
  }

  std::int64_t width() const override { return width_; }
  std::map<std::string, std::string> files_sha256() const override {
    std::map<std::string, std::string> files = tokenizer_.files_sha256();
    files[graph_->path()] = graph_->sha256();
    return files;
  }

 private:
  void find_roles() {
    for (const Port& port : graph_->inputs()) {
      const std::string& name = port.name;
      bool whole = port.type == at::kLong || port.type == at::kInt;
      auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
      if (has("pixel_values") && at::isFloatingType(port.type)) {
        roles_.push_back(Role::picture);
      } else if (has("mask")) {
        roles_.push_back(Role::mask);
      } else if (whole && (has("token_type") || has("segment"))) {
        roles_.push_back(Role::types);
      } else if (whole && has("position")) {
        roles_.push_back(Role::positions);
      } else if (whole && std::find(roles_.begin(), roles_.end(), Role::ids) == roles_.end()) {
        roles_.push_back(Role::ids);
        if (port.shaped && port.shape.size() != 2)
          bad_input("{}: its input '{}' is not [texts, tokens]", graph_->path(), printable(name));
        if (port.shaped && port.shape[0] > 1)
          bad_input("{}: takes {} texts at a time, not one", graph_->path(), port.shape[0]);
        if (port.shaped && port.shape[1] > 0) length_ = port.shape[1];
      } else {
        bad_input("{}: its input '{}' is nothing that a text gives (token numbers, their mask, types or positions)",
                  graph_->path(), printable(name));
      }
    }
    if (std::find(roles_.begin(), roles_.end(), Role::ids) == roles_.end())
      bad_input("{}: has no input for the numbers of tokens, so it reads no texts", graph_->path());
  }

  // By name; where nothing is asked for, what stands for a whole text, unless pooling is asked for.
  void find_output(const std::string& wanted) {
    const std::vector<Port>& outputs = graph_->outputs();
    auto find = [&](const std::string& name) {
      auto it = std::find_if(outputs.begin(), outputs.end(), [&](const Port& port) { return port.name == name; });
      return it == outputs.end() ? -1 : static_cast<std::ptrdiff_t>(it - outputs.begin());
    };
    if (!wanted.empty()) {
      std::ptrdiff_t found = find(wanted);
      if (found < 0) {
        std::vector<std::string> names;
        for (const Port& port : outputs) names.push_back(printable(port.name));
        bad_input("{}: has no output '{}'; it has {}", graph_->path(), printable(wanted), fmt::join(names, ", "));
      }
      output_ = static_cast<std::size_t>(found);
      return;
    }
    std::vector<std::string> names = {"last_hidden_state", "token_embeddings", "hidden_states"};
    if (pooling_ == "auto") names.insert(names.begin(), {"sentence_embedding", "text_embeds", "text_embedding"});
    for (const std::string& name : names) {
      std::ptrdiff_t found = find(name);
      if (found < 0) continue;
      output_ = static_cast<std::size_t>(found);
      return;
    }
  }

  at::Tensor input_of(const Port& port, Role role, const std::vector<std::int64_t>& ids, std::int64_t used) const {
    if (role == Role::picture) {  // of a network that reads both; what it makes of it is not looked at
      std::vector<std::int64_t> shape = port.shape;
      for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] < 0) shape[i] = i == 0 ? 1 : i == 1 ? 3 : kPictureSide;
      }
      if (shape.size() != 4) shape = {1, 3, kPictureSide, kPictureSide};
      return at::zeros(shape, port.type);
    }
    auto n = static_cast<std::int64_t>(ids.size());
    at::Tensor values;
    switch (role) {
      case Role::ids:
        values = at::tensor(ids, at::kLong);
        break;
      case Role::mask:
        values = (at::arange(n, at::kLong) < used).to(at::kLong);
        break;
      case Role::positions:
        values = at::arange(n, at::kLong);
        break;
      default:
        values = at::zeros({n}, at::kLong);
    }
    return values.unsqueeze(0).to(port.type);
  }

  // [D]. A text alone in its batch, without padding where that can be: the same bits whatever is beside it.
  at::Tensor encode_one(const std::string& text) const {
    std::vector<std::int64_t> ids = tokenizer_.encode(text, longest_);
    if (ids.empty()) ids.push_back(tokenizer_.padding());
    auto used = static_cast<std::int64_t>(ids.size());
    if (length_ > 0) ids.resize(static_cast<std::size_t>(length_), tokenizer_.padding());
    std::vector<at::Tensor> inputs;
    for (std::size_t i = 0; i < roles_.size(); ++i)
      inputs.push_back(input_of(graph_->inputs()[i], roles_[i], ids, used));
    at::Tensor value = graph_->run(inputs).at(output_);
    bool numbers = at::isFloatingType(value.scalar_type());
    if (numbers && value.dim() == 2 && value.size(0) == 1) return value[0].to(at::kFloat).contiguous();
    if (!numbers || value.dim() != 3 || value.size(0) != 1 || value.size(1) < used)
      bad_input("{}: its output '{}' is [{}], neither [texts, numbers] nor [texts, tokens, numbers]", graph_->path(),
                printable(graph_->outputs()[output_].name), fmt::join(value.sizes(), ", "));
    return pooled(value[0].to(at::kFloat).narrow(0, 0, used));
  }

  at::Tensor pooled(const at::Tensor& tokens) const {
    std::string how = pooling_;
    if (how == "auto") how = tokenizer_.last_sums_up() ? "last" : "mean";
    if (how == "first") return tokens[0].contiguous();
    if (how == "last") return tokens[tokens.size(0) - 1].contiguous();
    if (how == "max") return std::get<0>(tokens.max(0));
    return tokens.mean(0);
  }

  at::Tensor run(const std::vector<std::string>& texts) override {
    auto n = static_cast<std::int64_t>(texts.size());
    at::Tensor result = at::zeros({n, width_}, at::kFloat);
    auto* rows = result.data_ptr<float>();
    workers().run(n, [&](std::int64_t i, int) {
      at::Tensor row = encode_one(texts[static_cast<std::size_t>(i)]);
      if (row.numel() != width_) bad_input("{}: how wide its output is depends on the text", graph_->path());
      std::copy_n(row.data_ptr<float>(), width_, rows + i * width_);
    });
    return result;
  }

  Tokenizer tokenizer_;
  std::unique_ptr<OnnxGraph> graph_;
  std::vector<Role> roles_;  // of the graph's inputs
  std::string pooling_;
  std::size_t output_ = 0;
  std::int64_t length_ = 0;  // the one number of tokens that the graph takes; 0: any
  std::int64_t longest_ = 0;
  std::int64_t width_ = 0;
};

OptionInfo longest_option() {
  return {"max-length", std::int64_t{0}, "tokens of a text that are read; 0: as the tokenizer says", 0, 1 << 20, {}};
}

std::unique_ptr<TextEncoder> make_minilm(const Options& options) {
  std::filesystem::path folder = require_fetched(fetched_model("minilm"));
  TransformerFiles files{(folder / "model.onnx").string(), (folder / "tokenizer.json").string(), ""};
  return std::make_unique<TransformerEncoder>(files, "auto", "", options.integer("max-length"));
}

std::unique_ptr<TextEncoder> make_onnx(const Options& options) {
  TransformerFiles files{options.text("model"), options.text("tokenizer"), options.text("merges")};
  if (files.model.empty() || files.tokenizer.empty())
    bad_usage("text encoder onnx wants files: onnx:model=encoder.onnx,tokenizer=tokenizer.json");
  return std::make_unique<TransformerEncoder>(files, options.text("pooling"), options.text("output"),
                                              options.integer("max-length"));
}

}  // namespace

TextEncoderEntry minilm_encoder_entry() {
  return {"minilm",
          "all-MiniLM-L6-v2, which knows what sentences mean: galvani model get minilm",
          {longest_option()},
          make_minilm};
}

TextEncoderEntry onnx_encoder_entry() {
  return {"onnx",
          "your own network that reads texts (BERT, RoBERTa, CLIP, GPT-2)",
          {{"model", std::string(), "ONNX file", {}, {}, {}},
           {"tokenizer", std::string(), "tokenizer.json, vocab.txt or vocab.json, or a folder with one", {}, {}, {}},
           {"merges", std::string(), "merges.txt; empty: the one beside vocab.json", {}, {}, {}},
           {"pooling",
            std::string("auto"),
            "how the vectors of tokens become one; auto: an output that is one already, else last for CLIP and GPT-2, "
            "mean for others",
            {},
            {},
            {"auto", "mean", "first", "last", "max"}},
           {"output", std::string(), "name of the graph's output; empty: what stands for a whole text", {}, {}, {}},
           longest_option()},
          make_onnx};
}

}  // namespace galvani
