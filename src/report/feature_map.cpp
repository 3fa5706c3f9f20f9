#include "galvani/report/feature_map.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "galvani/base/parallel.h"
#include "galvani/base/text.h"

namespace galvani {
namespace {

constexpr std::int64_t kMapSide = 430;
constexpr std::int64_t kMapMargin = 16;
constexpr std::int64_t kMapTop = 52;
constexpr std::int64_t kRowsOfNeighbours = 64;
constexpr std::size_t kNamedClasses = 12;
// The first group is the ground on which the others are seen.
constexpr std::array<const char*, 7> kGroupColours{"#b8bec7", "#d9480f", "#1864ab", "#2b8a3e",
                                                   "#862e9c", "#e0a100", "#0b7285"};

at::Tensor joined(const std::vector<FeatureGroup>& groups, at::Tensor FeatureGroup::*member) {
  std::vector<at::Tensor> all;
  for (const FeatureGroup& group : groups) all.push_back(group.*member);
  return at::cat(all);
}

// The `count` nearest of the first `among` rows, but for the row itself; equal ones by their number.
std::vector<std::int64_t> nearest_rows(const double* distances, std::int64_t among, std::int64_t self,
                                       std::int64_t count) {
  std::vector<std::int64_t> order;
  for (std::int64_t j = 0; j < among; ++j) {
    if (j != self) order.push_back(j);
  }
  count = std::min(count, static_cast<std::int64_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [distances](std::int64_t a, std::int64_t b) {
    return distances[a] != distances[b] ? distances[a] < distances[b] : a < b;
  });
  order.resize(static_cast<std::size_t>(count));
  return order;
}

std::string class_colour(std::int64_t label, std::size_t classes) {
  if (label < 0) return "#b8bec7";
  double hue = 360.0 * static_cast<double>(label) / static_cast<double>(std::max<std::size_t>(classes, 1));
  return fmt::format("hsl({:.0f},70%,{}%)", hue, label % 2 == 0 ? 42 : 58);
}

class MapDrawing {
 public:
  explicit MapDrawing(const TsneMap& map) : map_(map) {
    std::array<double, 2> high{};
    low_ = high = map.points.at(0);
    for (const auto& point : map.points) {
      for (std::size_t axis = 0; axis < 2; ++axis) {
        low_[axis] = std::min(low_[axis], point[axis]);
        high[axis] = std::max(high[axis], point[axis]);
      }
    }
    double widest = std::max({high[0] - low_[0], high[1] - low_[1], 1e-12});
    scale_ = static_cast<double>(kMapSide - 20) / widest;
    for (std::size_t axis = 0; axis < 2; ++axis)
      shift_[axis] = (static_cast<double>(kMapSide) - scale_ * (high[axis] - low_[axis])) / 2;
  }

  std::string frame(std::int64_t left, const std::string& title) const {
    return fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#d0d5dd\"/>\n"
        "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n",
        left, kMapTop, kMapSide, kMapSide, left, kMapTop - 8, escape_markup(title));
  }
  std::string point(std::int64_t left, std::size_t i, const std::string& colour) const {
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" fill=\"{}\" fill-opacity=\"0.75\"/>\n",
                       static_cast<double>(left) + shift_[0] + scale_ * (map_.points[i][0] - low_[0]),
                       static_cast<double>(kMapTop) + shift_[1] + scale_ * (map_.points[i][1] - low_[1]), colour);
  }

 private:
  const TsneMap& map_;
  std::array<double, 2> low_{}, shift_{};
  double scale_ = 1;
};

// `bottom` becomes that of the last line, if it is below.
std::string legend(std::int64_t left, const std::vector<std::pair<std::string, std::string>>& entries,
                   std::int64_t& bottom) {
  std::string text;
  std::int64_t x = left, y = kMapTop + kMapSide + 20;
  for (const auto& [name, colour] : entries) {
    auto width = static_cast<std::int64_t>(22 + 7 * name.size());
    if (x > left && x + width > left + kMapSide) {
      x = left;
      y += 17;
    }
    text += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>\n", x + 5,
                        y - 4, colour, x + 13, y, escape_markup(name));
    x += width;
  }
  bottom = std::max(bottom, y);
  return text;
}

}  // namespace

std::vector<FeatureNeighbours> feature_neighbours(const std::vector<FeatureGroup>& groups, std::int64_t count) {
  at::Tensor points = joined(groups, &FeatureGroup::features).to(at::kDouble);
  at::Tensor labels = joined(groups, &FeatureGroup::labels).contiguous();
  at::Tensor predicted = joined(groups, &FeatureGroup::predicted).contiguous();
  std::int64_t n = points.size(0), ground = groups.at(0).size();
  std::vector<std::size_t> group_of;
  for (std::size_t g = 0; g < groups.size(); ++g)
    group_of.insert(group_of.end(), static_cast<std::size_t>(groups[g].size()), g);
  const auto* label = labels.data_ptr<std::int64_t>();
  const auto* verdict = predicted.data_ptr<std::int64_t>();
  at::Tensor lengths = (points * points).sum(1);
  std::vector<FeatureNeighbours> of_input(static_cast<std::size_t>(n));
  workers().run((n + kRowsOfNeighbours - 1) / kRowsOfNeighbours, [&](std::int64_t task, int) {
    std::int64_t begin = task * kRowsOfNeighbours, rows = std::min(kRowsOfNeighbours, n - begin);
    at::Tensor some = points.narrow(0, begin, rows);
    at::Tensor distances =
        (lengths.narrow(0, begin, rows).unsqueeze(1) + lengths.unsqueeze(0) - 2 * some.mm(points.t())).contiguous();
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t i = begin + r;
      const double* of = distances.data_ptr<double>() + r * n;
      FeatureNeighbours& own = of_input[static_cast<std::size_t>(i)];
      own.in_group.assign(groups.size(), 0);
      for (std::int64_t j : nearest_rows(of, n, i, count))
        own.in_group[group_of[static_cast<std::size_t>(j)]] += 1 / static_cast<double>(count);
      for (std::int64_t j : nearest_rows(of, ground, i, count)) {
        own.same_label += label[j] == label[i] ? 1 / static_cast<double>(count) : 0;
        own.same_verdict += label[j] == verdict[i] ? 1 / static_cast<double>(count) : 0;
      }
    }
  });
  std::vector<FeatureNeighbours> result(groups.size());
  for (FeatureNeighbours& group : result) group.in_group.assign(groups.size(), 0);
  for (std::size_t i = 0; i < of_input.size(); ++i) {
    FeatureNeighbours& group = result[group_of[i]];
    double share = 1 / static_cast<double>(groups[group_of[i]].size());
    for (std::size_t g = 0; g < groups.size(); ++g) group.in_group[g] += share * of_input[i].in_group[g];
    group.same_label += share * of_input[i].same_label;
    group.same_verdict += share * of_input[i].same_verdict;
  }
  return result;
}

std::string feature_map_svg(const std::string& title, const std::vector<FeatureGroup>& groups, const TsneMap& map,
                            const std::vector<std::string>& classes) {
  MapDrawing drawing(map);
  std::int64_t left = kMapMargin, right = 2 * kMapMargin + kMapSide;
  at::Tensor labels = joined(groups, &FeatureGroup::labels).contiguous();
  const auto* label = labels.data_ptr<std::int64_t>();
  std::string text = drawing.frame(left, "by group") + drawing.frame(right, "by label");
  std::vector<std::pair<std::string, std::string>> of_groups, of_classes;
  std::size_t first = 0;
  std::set<std::int64_t> seen;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::string colour = kGroupColours[g < kGroupColours.size() ? g : 1 + (g - 1) % (kGroupColours.size() - 1)];
    of_groups.emplace_back(fmt::format("{} ({})", groups[g].name, groups[g].size()), colour);
    for (std::size_t i = first; i < first + static_cast<std::size_t>(groups[g].size()); ++i) {
      seen.insert(label[i]);
      text += drawing.point(left, i, colour) + drawing.point(right, i, class_colour(label[i], classes.size()));
    }
    first += static_cast<std::size_t>(groups[g].size());
  }
  if (seen.size() <= kNamedClasses) {
    for (std::int64_t one : seen) {
      bool known = one >= 0 && static_cast<std::size_t>(one) < classes.size();
      of_classes.emplace_back(known ? classes[static_cast<std::size_t>(one)] : "unlabelled",
                              class_colour(one, classes.size()));
    }
  }
  std::int64_t width = 3 * kMapMargin + 2 * kMapSide, bottom = 0;
  text += legend(left, of_groups, bottom) + legend(right, of_classes, bottom);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
             "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
             "<text x=\"{2}\" y=\"22\" font-size=\"14\" font-weight=\"bold\">{3}</text>\n",
             width, bottom + kMapMargin, kMapMargin, escape_markup(title)) +
         text + "</svg>\n";
}

}  // namespace galvani
