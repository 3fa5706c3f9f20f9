// Training of a captioner: networks that say in a sentence what a neuron's pictures have in common (NSGen 4.2, after
// MILAN). The describer `captioner` uses what comes of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace galvani {

struct CaptionerOptions {
  // Neurons that people have put into words: annotations.csv with the columns layer, unit, summary (or annotation), and
  // for each layer a folder with images.npy [units, pictures, 3, H, W] and masks.npy [units, pictures, H, W] (a channel
  // of its own may stand before H). Empty: scenes drawn with known attributes.
  std::filesystem::path folder;
  std::int64_t neurons = 4000;  // of drawn scenes
  std::int64_t count = 10;      // pictures a neuron
  double held_out = 0.1;        // of the neurons
  std::int64_t epochs = 100;    // at most
  std::int64_t patience = 4;    // epochs without a better BLEU on what is held out, before it ends
  std::int64_t batch = 64;
  double rate = 0.001;
  double dropout = 0.5;
  double penalty = 1;  // for pictures that nothing attended to
  std::int64_t embedding = 128;
  std::int64_t hidden = 256;
  std::int64_t attention = 256;
  std::int64_t language = 128;  // hidden, of the language model
  std::uint64_t seed = 0;
};

// How often the sentences of held-out neurons state an attribute right, "none" included.
struct CaptionedAttribute {
  std::string name;
  double right = 0;
  double usual = 0;     // if the most frequent value were said of every neuron
  double shuffled = 0;  // if every neuron got the sentence of another one
};

struct CaptionerTraining {
  std::int64_t neurons = 0;  // learned from
  std::int64_t held_out = 0;
  std::int64_t vocabulary = 0;
  std::int64_t epochs = 0;                     // until the best
  double loss = 0;                             // nats a word, of the best epoch
  double bleu = 0;                             // of held-out neurons, by beam search and re-ranking
  double bleu_likeliest = 0;                   // of the likeliest sentence of each beam, not re-ranked
  double bleu_shuffled = 0;                    // if every neuron got the sentence of another one
  double same = 0;                             // the share of sentences that are the very ones
  std::vector<CaptionedAttribute> attributes;  // of drawn scenes
  double seconds = 0;
};

// Writes the captioner to `output`. With a progress bar; Ctrl-C ends it without a file. Same seed, same file, for any
// number of threads.
CaptionerTraining train_captioner(const CaptionerOptions& options, const std::filesystem::path& output);

// BLEU of 1 to 4 words (Papineni et al. 2002) over all pairs, with the penalty for short ones; sentences of fewer than
// four words count with what they have.
double bleu(const std::vector<std::vector<std::int64_t>>& found, const std::vector<std::vector<std::int64_t>>& wanted);

}  // namespace galvani
