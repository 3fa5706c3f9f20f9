// Sentences of a trained captioner: a beam search under p(d|R) over what the exemplars show, re-ranked by how much more
// is said than what is said of any neuron (NSGen 4.2.2, after MILAN).
#include "semantics/caption/captioner.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/rng.h"
#include "semantics/caption/scenes.h"
#include "semantics/describers.h"

namespace galvani {
namespace {

class CaptionDescriber : public Describer {
 public:
  explicit CaptionDescriber(const Options& options)
      : captioner_(Captioner::load(file_of(options))),
        beam_(options.integer("beam")),
        lambda_(options.real("lambda")),
        margin_(options.real("margin")),
        chance_(options.integer("chance")),
        p_(options.real("p")) {}

 private:
  static std::string file_of(const Options& options) {
    const std::string& file = options.text("file");
    if (file.empty())
      bad_usage("captioner needs its file: captioner:file=words.captioner, of 'galvani train-captioner'");
    return file;
  }

  // What each neuron's exemplars show: [neurons][L, D]; undefined for those without any.
  std::vector<at::Tensor> annotate(const Exemplars& exemplars, std::size_t which) const {
    const ExemplarLayer& layer = exemplars.layers[which];
    std::int64_t count = layer.maps.size(1);
    bool mapped = layer.spatial() && layer.height > 1;
    std::vector<at::Tensor> result(static_cast<std::size_t>(layer.neurons));
    workers().run(layer.neurons, [&](std::int64_t neuron, int) {
      if (layer.dead(neuron)) return;
      std::vector<at::Tensor> seen, masks;
      for (std::int64_t place = 0; place < count; ++place) {
        std::int64_t row = layer.rows[static_cast<std::size_t>(neuron * count + place)];
        if (row < 0) break;
        at::Tensor image = exemplars.image(row);
        seen.push_back(captioner_.annotator.see(Annotator::fitted(image)));
        at::Tensor mask =
            mapped ? exemplars.mask(which, neuron, place) : at::ones({image.size(1), image.size(2)}, at::kBool);
        masks.push_back(Annotator::fitted_mask(mask));
      }
      if (!seen.empty())
        result[static_cast<std::size_t>(neuron)] = captioner_.annotations(at::stack(seen), at::stack(masks));
    });
    return result;
  }

  // How likely as good a likelihood is for exemplars drawn from all neurons of the layer.
  double p_of(const Caption& caption, const at::Tensor& own, const at::Tensor& pool, Rng rng) const {
    c10::InferenceMode inference;
    std::int64_t count = own.size(0);
    std::vector<std::int64_t> drawn;
    for (std::int64_t i = 0; i < chance_ * count; ++i)
      drawn.push_back(static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(pool.size(0)))));
    at::Tensor sets = pool.index_select(0, at::tensor(drawn, at::kLong)).view({chance_, count, -1});
    at::Tensor sentences = sentence_rows({caption.words}).expand({chance_, -1}).contiguous();
    at::Tensor likelihood = caption_likelihood(captioner_.decoder, sets, sentences);
    auto as_good = (likelihood >= caption.likelihood).sum().item<std::int64_t>();
    return static_cast<double>(as_good + 1) / static_cast<double>(chance_ + 1);
  }

  NeuronWords words_of(const at::Tensor& own, const at::Tensor& pool, const Rng& rng) const {
    Caption best = search_captions(captioner_.decoder, captioner_.language, own, beam_, lambda_, margin_)[0];
    NeuronWords words;
    words.words = captioner_.vocabulary.decode(best.words);
    words.figure = "probability a word";
    words.score = std::exp(best.likelihood / static_cast<double>(best.words.size() + 1));
    words.p = p_of(best, own, pool, rng);
    words.sure = words.p <= p_;
    words.parts = {{words.words, "caption", words.figure, words.score, words.p}};
    return words;
  }

  std::vector<std::vector<NeuronWords>> run(const DescribeTask& task) override {
    if (task.data.type().kind != SampleKind::image) bad_usage("{}: a captioner looks at images", task.data.name);
    std::int64_t all = 0;
    for (const ExemplarLayer& layer : task.exemplars.layers) all += layer.neurons;
    Progress progress("captions", all, "neurons");
    std::vector<std::vector<NeuronWords>> result;
    for (std::size_t i = 0; i < task.exemplars.layers.size(); ++i) {
      const ExemplarLayer& layer = task.exemplars.layers[i];
      std::vector<at::Tensor> annotations = annotate(task.exemplars, i);
      std::vector<at::Tensor> shown;
      for (const at::Tensor& own : annotations) {
        if (own.defined()) shown.push_back(own);
      }
      at::Tensor pool = shown.empty() ? at::Tensor() : at::cat(shown);
      std::vector<NeuronWords> words(annotations.size());
      workers().run(layer.neurons, [&](std::int64_t index, int) {
        auto n = static_cast<std::size_t>(index);
        Rng rng = Rng(task.seed).derive("captions").derive({i, n});
        words[n] = annotations[n].defined() ? words_of(annotations[n], pool, rng) : never_active();
      });
      progress.advance(layer.neurons);
      result.push_back(std::move(words));
    }
    return result;
  }

  Captioner captioner_;
  std::int64_t beam_;
  double lambda_;
  double margin_;
  std::int64_t chance_;
  double p_;
};

}  // namespace

DescriberEntry captioner_entry() {
  return {
      "captioner",
      "sentences of a network that has learned from neurons in words ('galvani train-captioner')",
      {{"file", std::string(), "of 'galvani train-captioner'", {}, {}, {}},
       {"beam", std::int64_t{50}, "sentences that are looked at", 1, 1000, {}},
       {"lambda", 0.2, "how much what is said of every neuron counts against a sentence", 0, 10, {}},
       {"margin", 1.0, "nats that a sentence may be less likely than the likeliest, to be chosen", 0, 1e6, {}},
       {"chance", std::int64_t{199}, "sets of exemplars of any neurons that a sentence is tried on", 19, 1e5, {}},
       {"p", 0.05, "largest p of a sentence that is sure", 0, 1, {}}},
      [](const Options& options) -> std::unique_ptr<Describer> { return std::make_unique<CaptionDescriber>(options); }};
}

}  // namespace galvani
