#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/options.h"
#include "galvani/generate/attack.h"

namespace galvani {
namespace {

constexpr double kMostRadius = 1e4;
constexpr long long kMostRadii = 1000;

double parse_radius(const std::string& text) {
  static const OptionInfo info = {"eps", 0.0, "", 0.0, kMostRadius, {}, true};
  return std::get<double>(parse_option("attack", info, text));
}

}  // namespace

std::vector<double> parse_radii(const std::string& text) {
  std::vector<double> radii;
  for (std::size_t from = 0, end = 0; !text.empty() && from <= text.size(); from = end + 1) {
    end = std::min(text.find(',', from), text.size());
    std::string part = text.substr(from, end - from);
    std::size_t dots = part.find("..");
    if (dots == std::string::npos) {
      radii.push_back(parse_radius(part));
      continue;
    }
    std::size_t slash = part.find('/', dots);
    if (slash == std::string::npos)
      bad_usage("eps '{}' is a range without steps: write it as 0..16/255, or list the values", printable(part));
    std::string over = part.substr(slash);
    double unit = parse_radius("1" + over);
    auto low = std::llround(parse_radius(part.substr(0, dots) + over) / unit);
    auto high = std::llround(parse_radius(part.substr(dots + 2)) / unit);
    if (low > high || high - low >= kMostRadii)
      bad_usage("eps '{}' must go upwards, in at most {} steps", printable(part), kMostRadii);
    for (auto step = low; step <= high; ++step) radii.push_back(static_cast<double>(step) * unit);
  }
  if (radii.size() > static_cast<std::size_t>(kMostRadii))
    bad_usage("at most {} values of eps can be tried at once", kMostRadii);
  std::sort(radii.begin(), radii.end());
  radii.erase(std::unique(radii.begin(), radii.end()), radii.end());
  return radii;
}

std::string radius_text(double radius, double full) {
  double steps = radius * full;
  if (radius == 0) return "0";
  if (std::abs(steps - std::round(steps)) < 1e-6) return fmt::format("{:.0f}/{:.0f}", std::round(steps), full);
  return fmt::format("{:.6g}", radius);
}

}  // namespace galvani
