#include "galvani/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>

#include "galvani/base/terminal.h"

namespace galvani {
namespace {

std::atomic<bool> progress_enabled{true};
std::atomic<int> passing{0};
constexpr std::chrono::milliseconds kTerminalInterval{100};
constexpr std::chrono::seconds kPlainInterval{10};
constexpr int kBarWidth = 24;
constexpr int kLeastBarWidth = 4;

// A terminal that does not say how wide it is.
constexpr int kUsualWidth = 100;

}  // namespace

std::string format_rate(double rate) {
  return rate >= 100 ? format_count(std::llround(rate)) : fmt::format("{:.3g}", rate);
}

std::string format_duration(double seconds) {
  auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string format_count(std::int64_t n) {
  std::string digits = std::to_string(n);
  std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string format_bytes(std::uint64_t n) {
  if (n < 1024) return fmt::format("{} B", n);
  auto value = static_cast<double>(n);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

Progress::Progress(std::string title, std::int64_t total, std::string unit)
    : title_(std::move(title)),
      total_(total),
      unit_(std::move(unit)),
      start_(Clock::now()),
      drawn_(start_),
      terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  finish();
}

void Progress::set_enabled(bool enabled) {
  progress_enabled = enabled;
}

Progress::Passing::Passing() {
  ++passing;
}

Progress::Passing::~Passing() {
  --passing;
}

void Progress::advance(std::int64_t by) {
  done_ += by;
  // The last line is finish()'s.
  if (!terminal_ && total_ > 0 && done_ >= total_) return;
  auto interval = terminal_ ? Clock::duration(kTerminalInterval) : Clock::duration(kPlainInterval);
  if (Clock::now() - drawn_ >= interval) draw(false);
}

void Progress::note(std::string text) {
  note_ = std::move(text);
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  bool shown = drawn_ != start_;
  if (terminal_ || shown) draw(true);
}

void Progress::draw(bool last) {
  drawn_ = Clock::now();
  if (!progress_enabled) return;
  double seconds = std::chrono::duration<double>(drawn_ - start_).count();
  if (terminal_ && last && passing > 0) {
    std::fputs("\r\033[K", stderr);
  } else if (terminal_) {
    int width = terminal_width(STDERR_FILENO);
    std::string bar = render(title_, done_, total_, unit_, seconds, note_, width > 0 ? width : kUsualWidth);
    std::fprintf(stderr, "\r\033[K%s%s", bar.c_str(), last ? "\n" : "");
  } else {
    std::fprintf(stderr, "%s\n", render(title_, done_, total_, unit_, seconds, note_, 0).c_str());
  }
  std::fflush(stderr);
}

std::string Progress::render(const std::string& title, std::int64_t done, std::int64_t total, const std::string& unit,
                             double seconds, const std::string& note, int width) {
  double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string line;
  double share = 0;
  if (total > 0) {
    share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
    line += fmt::format("{:3.0f}% {}/{} {}", share * 100, format_count(done), format_count(total), unit);
  } else {
    line += fmt::format("{} {}", format_count(done), unit);
  }
  line += fmt::format(", {}/s, {}", format_rate(rate), format_duration(seconds));
  if (total > done && rate > 0) line += ", ETA " + format_duration(static_cast<double>(total - done) / rate);
  if (!note.empty()) line += ", " + note;
  // The bar takes what the numbers leave.
  int room = std::min(kBarWidth, width - 1 - static_cast<int>(title.size() + line.size()) - 4);
  std::string bar;
  if (total > 0 && room >= kLeastBarWidth) {
    int full = static_cast<int>(share * room);
    bar = fmt::format("[{:#<{}}{:-<{}}] ", "", full, "", room - full);
  }
  line = title + " " + bar + line;
  // What does not fit is left out as a whole: half a number says something else.
  auto most = static_cast<std::size_t>(std::max(0, width - 1));
  while (width > 0 && line.size() > most && line.find(", ") != std::string::npos) line.resize(line.rfind(", "));
  if (width > 0 && line.size() > most) line.resize(most);
  return line;
}

}  // namespace galvani
