// A picture made of boxes, lines, texts and images, written as SVG or as PNG.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace galvani {

struct Ink {
  std::array<int, 3> rgb{0, 0, 0};
};
inline constexpr Ink kInk{{38, 44, 54}};
inline constexpr Ink kSoftInk{{110, 120, 133}};
inline constexpr Ink kFaultInk{{194, 65, 12}};
inline constexpr Ink kAccentInk{{11, 107, 203}};
inline constexpr Ink kLineInk{{208, 213, 221}};

class Drawing {
 public:
  Drawing(int width, int height) : width_(width), height_(height) {}

  void box(int x, int y, int width, int height, Ink ink, int thickness = 1);
  void arrow(int x0, int y, int x1, Ink ink);
  enum class Anchor { start, middle };
  // `y` is where the letters stand. Cut with an ellipsis if it is wider than `most` (0: never).
  void text(int x, int y, const std::string& words, int size, Ink ink, bool bold = false, Anchor anchor = Anchor::start,
            int most = 0);
  // Words on as many lines as they need, `lines` at most; the lowest line's y.
  int paragraph(int x, int y, const std::string& words, int size, Ink ink, int width, int lines, bool bold = false);
  // [C, H, W] uint8, enlarged or reduced to the box pixel by pixel.
  void image(int x, int y, int width, int height, const at::Tensor& pixels);

  int width() const { return width_; }
  int height() const { return height_; }
  std::string svg() const;
  std::string png() const;

 private:
  struct Box {
    int x, y, width, height, thickness;
    Ink ink;
  };
  struct Arrow {
    int x0, y, x1;
    Ink ink;
  };
  struct Text {
    int x, y, size;
    std::string words;
    Ink ink;
    bool bold;
    Anchor anchor;
  };
  struct Image {
    int x, y, width, height;
    at::Tensor pixels;
  };
  int width_, height_;
  std::vector<std::variant<Box, Arrow, Text, Image>> parts_;
};

// About how wide a text of that size is.
int text_width(const std::string& words, int size, bool bold = false);

}  // namespace galvani
