// Small pictures on large sheets: a page of thousands of images has a few dozen to decode, and only when they are seen.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace galvani {

struct Tile {
  int width = 0;
  int height = 0;
};

// Images up to this size are shown pixel by pixel, larger ones are reduced to it.
inline constexpr int kLongestTile = 64;
inline constexpr int kTilesInSheet = 200;
inline constexpr int kSheetColumns = 20;

Tile tile_of(std::int64_t height, std::int64_t width);

// Tiles in the order they are added, row by row.
class SheetMaker {
 public:
  SheetMaker(Tile tile, std::int64_t channels);

  // [C, H, W] uint8, the shape of all of them; returns its position.
  std::int64_t add(const at::Tensor& image);
  std::int64_t size() const { return size_; }

  // Encoded sheets, base64, and how a data URI of them begins.
  std::vector<std::string> finish();
  static const char* type() { return "data:image/png;base64"; }

 private:
  void close_sheet();

  Tile tile_;
  int channels_;
  std::int64_t size_ = 0;
  std::vector<std::uint8_t> sheet_;  // the one that is being filled, [C, H, W]
  std::vector<std::string> done_;
};

std::string base64(std::string_view bytes);

}  // namespace galvani
