// What a network that turns images into images makes of some: figures and a sheet to look at.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "galvani/base/json.h"
#include "galvani/data/dataset.h"
#include "galvani/model/network.h"

namespace galvani {

// How the architecture begins in the card of what train_cycle makes.
constexpr const char* kCycleOf = "cycle of ";

// A network loaded for any output whose first output is an image of the size of its input, on the same scale: examples.
// A second one of that size is what it was on the way. The two translators of a cycle (galvani/model/translator.h) have
// two ways: images of the first domain become Q(P(x)), those of the second P(Q(y)).
class ImageToImage {
 public:
  // Error(bad_input) naming the network unless it is one. It must outlive this.
  explicit ImageToImage(Network& network);

  // Whether images of a second domain go another way.
  bool two_ways() const { return two_ways_; }
  // Of which domain each image is, 0 or 1, by the name of its class, or by the nearer mean image where that is of
  // neither. images [N, C, H, W] uint8; `classes` as many names, or none.
  std::vector<char> domains(const at::Tensor& images, const std::vector<std::string>& classes) const;
  std::string rule() const;  // a sentence about that; empty: there is one way

  struct Made {
    at::Tensor examples;     // [N, C, H, W] float in the unit of the file, neither rounded nor clipped
    at::Tensor transformed;  // likewise; undefined if the network does not show it
  };
  // images [N, C, H, W] uint8, of these domains. With `random`, dropout is awake.
  Made make(const at::Tensor& images, const std::vector<char>& domains, const Application& how) const;

  Network& network() const { return network_; }

 private:
  Made make(const at::Tensor& images, const Application& how) const;
  at::Tensor to_file_unit(const at::Tensor& value) const;

  Network& network_;
  bool two_ways_ = false;
  std::vector<double> weight_;  // of the domain's score
  double bias_ = 0;
};

// The name of every input's class, as ImageToImage::domains takes them; "" where there is no label.
std::vector<std::string> class_names_of(const Labelled& data);

// On the grid of 8 bits.
at::Tensor to_bytes(const at::Tensor& images);

struct ExampleFigures {
  static constexpr std::array<double, 5> kShares = {0.05, 0.25, 0.5, 0.75, 0.95};

  std::int64_t images = 0;
  double similarity = 0;                 // mean SSIM of examples and originals
  std::array<double, 5> quantiles = {};  // of that, at kShares
  double change = 0;                     // mean absolute difference, in grey levels of 255
  double unchanged = 0;                  // share of examples that equal their original
  double transformed_similarity = 0;     // mean SSIM of what an example was on the way
  double spread = 0;   // how different from each other the transformed are: their deviation over that of the originals
  double variety = 0;  // mean absolute difference of two examples of one image, in grey levels
};

// All [N, C, H, W] uint8; `again` are other examples of the same images. Without `transformed` its figures are of the
// examples.
ExampleFigures measure_examples(const at::Tensor& originals, const at::Tensor& transformed, const at::Tensor& examples,
                                const at::Tensor& again);
// With dropout awake.
ExampleFigures measure_examples(const ImageToImage& translator, const Dataset& originals, std::uint64_t seed);

// What is wrong with a generator of which this was measured, a sentence each; none: nothing.
std::vector<std::string> complaints(const ExampleFigures& figures);
Json as_json(const ExampleFigures& figures);

// A PNG of at most 40 images: original, transformed, example, difference (four times as strong) side by side. All
// [N, C, H, W] uint8.
void write_example_sheet(const at::Tensor& originals, const at::Tensor& transformed, const at::Tensor& examples,
                         const std::string& title, const std::filesystem::path& path);

}  // namespace galvani
