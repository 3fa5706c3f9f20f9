#include "report/drawing.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <opencv2/imgproc.hpp>
#include <sstream>

#include "galvani/base/text.h"
#include "galvani/base/utf8.h"
#include "galvani/data/image.h"
#include "report/sprites.h"

namespace galvani {
namespace {

constexpr double kHershey = 1.0 / 30;  // scale of the font that is one pixel of size

std::string colour(Ink ink) {
  return fmt::format("#{:02x}{:02x}{:02x}", ink.rgb[0], ink.rgb[1], ink.rgb[2]);
}
cv::Scalar scalar(Ink ink) {
  return {static_cast<double>(ink.rgb[0]), static_cast<double>(ink.rgb[1]), static_cast<double>(ink.rgb[2])};
}

// The vector font knows ASCII alone.
std::string ascii(const std::string& words) {
  std::string result;
  for (std::string_view rest = words; !rest.empty();) {
    Character first = first_character(rest);
    result += first.valid && first.code >= 32 && first.code < 127 ? static_cast<char>(first.code) : '?';
    rest.remove_prefix(first.length);
  }
  return result;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

cv::Mat rgb_of(const at::Tensor& pixels, int width, int height) {
  at::Tensor image = pixels.size(0) == 3 ? pixels : pixels.narrow(0, 0, 1).expand({3, -1, -1});
  at::Tensor interleaved = image.permute({1, 2, 0}).contiguous();
  cv::Mat own(static_cast<int>(interleaved.size(0)), static_cast<int>(interleaved.size(1)), CV_8UC3,
              interleaved.data_ptr());
  cv::Mat result;
  bool reduced = width < own.cols || height < own.rows;
  cv::resize(own, result, cv::Size(width, height), 0, 0, reduced ? cv::INTER_AREA : cv::INTER_NEAREST);
  return result;
}

}  // namespace

int text_width(const std::string& words, int size, bool bold) {
  int baseline = 0;
  return cv::getTextSize(ascii(words), cv::FONT_HERSHEY_SIMPLEX, size * kHershey, bold ? 2 : 1, &baseline).width;
}

void Drawing::box(int x, int y, int width, int height, Ink ink, int thickness) {
  parts_.emplace_back(Box{x, y, width, height, thickness, ink});
}

void Drawing::arrow(int x0, int y, int x1, Ink ink) {
  parts_.emplace_back(Arrow{x0, y, x1, ink});
}

void Drawing::text(int x, int y, const std::string& words, int size, Ink ink, bool bold, Anchor anchor, int most) {
  std::string shown = words;
  while (most > 0 && shown.size() > 4 && text_width(shown, size, bold) > most) {
    shown.resize(shown.size() - (shown.size() > 3 && shown.compare(shown.size() - 3, 3, "...") == 0 ? 4 : 1));
    while (!shown.empty() && !is_utf8(shown)) shown.pop_back();
    shown += "...";
  }
  parts_.emplace_back(Text{x, y, size, shown, ink, bold, anchor});
}

int Drawing::paragraph(int x, int y, const std::string& words, int size, Ink ink, int width, int lines, bool bold) {
  std::string line;
  int used = 0;
  std::vector<std::string> all = words_of(words);
  for (const std::string& word : all) {
    std::string longer = line.empty() ? word : line + " " + word;
    if (!line.empty() && text_width(longer, size, bold) > width) {
      if (++used == lines) {
        text(x, y, line + " ...", size, ink, bold, Anchor::start, width);
        return y;
      }
      text(x, y, line, size, ink, bold, Anchor::start, width);
      y += size + 4;
      line = word;
    } else {
      line = longer;
    }
  }
  if (!line.empty()) text(x, y, line, size, ink, bold, Anchor::start, width);
  return y;
}

void Drawing::image(int x, int y, int width, int height, const at::Tensor& pixels) {
  parts_.emplace_back(Image{x, y, width, height, pixels});
}

std::string Drawing::svg() const {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"system-ui, sans-serif\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width_, height_);
  for (const auto& part : parts_) {
    if (const auto* b = std::get_if<Box>(&part)) {
      out += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
          b->x, b->y, b->width, b->height, colour(b->ink), b->thickness);
    } else if (const auto* a = std::get_if<Arrow>(&part)) {
      out += fmt::format("<path d=\"M{} {}H{}m-6 -4l6 4l-6 4\" fill=\"none\" stroke=\"{}\"/>\n", a->x0, a->y, a->x1,
                         colour(a->ink));
    } else if (const auto* t = std::get_if<Text>(&part)) {
      out += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{}{}>{}</text>\n", t->x, t->y, t->size,
                         colour(t->ink), t->bold ? " font-weight=\"600\"" : "",
                         t->anchor == Anchor::middle ? " text-anchor=\"middle\"" : "", escape_markup(t->words));
    } else if (const auto* i = std::get_if<Image>(&part)) {
      bool whole = i->pixels.size(1) * 2 <= i->height;
      out += fmt::format("<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{} href=\"data:image/png;base64,{}\"/>\n",
                         i->x, i->y, i->width, i->height, whole ? " style=\"image-rendering:pixelated\"" : "",
                         base64(encode_png(i->pixels.contiguous())));
    }
  }
  return out + "</svg>\n";
}

std::string Drawing::png() const {
  cv::Mat page(height_, width_, CV_8UC3, cv::Scalar(255, 255, 255));
  for (const auto& part : parts_) {
    if (const auto* b = std::get_if<Box>(&part)) {
      cv::rectangle(page, cv::Rect(b->x, b->y, b->width, b->height), scalar(b->ink), b->thickness);
    } else if (const auto* a = std::get_if<Arrow>(&part)) {
      cv::line(page, {a->x0, a->y}, {a->x1, a->y}, scalar(a->ink), 1, cv::LINE_AA);
      for (int side : {-4, 4}) cv::line(page, {a->x1 - 6, a->y + side}, {a->x1, a->y}, scalar(a->ink), 1, cv::LINE_AA);
    } else if (const auto* t = std::get_if<Text>(&part)) {
      std::string words = ascii(t->words);
      int x = t->anchor == Anchor::middle ? t->x - text_width(words, t->size, t->bold) / 2 : t->x;
      cv::putText(page, words, {x, t->y}, cv::FONT_HERSHEY_SIMPLEX, t->size * kHershey, scalar(t->ink), t->bold ? 2 : 1,
                  cv::LINE_AA);
    } else if (const auto* i = std::get_if<Image>(&part)) {
      rgb_of(i->pixels, i->width, i->height).copyTo(page(cv::Rect(i->x, i->y, i->width, i->height)));
    }
  }
  at::Tensor planar = at::from_blob(page.data, {height_, width_, 3}, at::kByte).permute({2, 0, 1}).contiguous();
  return encode_png(planar);
}

}  // namespace galvani
