#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/base/signal_stack.h"
#include "galvani/base/terminal.h"
#include "galvani/base/text.h"
#include "galvani/base/utf8.h"
#include "galvani/coverage/criterion.h"
#include "galvani/generate/generator.h"
#include "galvani/model/evaluate.h"
#include "listeners.h"

namespace galvani::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLeastWidth = 80;
constexpr int kLeastHeight = 22;
constexpr int kMostWidth = 140;
constexpr double kSlopeSeconds = 30;  // ETAs look back so far

// Styles are the parameters of an SGR sequence.
constexpr const char* kPlain = "0";
constexpr const char* kFaint = "0;90";
constexpr const char* kLabel = "0;36";
constexpr const char* kTitle = "0;1;33";
constexpr const char* kStrong = "0;1";
constexpr const char* kAlarm = "0;1;31";
constexpr const char* kGood = "0;32";

// The characters of a text, one column each: what is no UTF-8, drives a terminal or may be wider becomes '?'.
std::vector<std::string> columns_of(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    Character c = first_character(text);
    // Arrows, boxes and blocks (U+2000..U+26FF) are ours and narrow; beyond them columns cannot be counted on.
    bool narrow = c.code < 0x800 || (c.code >= 0x2000 && c.code < 0x2700);
    result.emplace_back(c.valid && narrow && !drives_terminal(c.code) ? text.substr(0, c.length) : "?");
    text.remove_prefix(c.length);
  }
  return result;
}

// A grid of characters that is turned into text at the end.
class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width), height_(height), cells_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height)) {}

  // Cut at `most` columns and at the edge; returns the column after it.
  int text(int x, int y, std::string_view what, const char* style = kPlain, int most = 1 << 20) {
    std::vector<std::string> all = columns_of(what);
    auto room = static_cast<std::size_t>(std::max(0, std::min(most, width_ - x)));
    if (all.size() > room && room > 0) {
      all.resize(room);
      all.back() = "…";
    }
    if (y < 0 || y >= height_ || room == 0) return x;
    for (std::string& one : all) at(x++, y) = {std::move(one), style};
    return x;
  }
  void right(int end, int y, std::string_view what, const char* style = kPlain) {
    text(end - static_cast<int>(columns_of(what).size()), y, what, style);
  }
  void line(int y, int from, int to, const char* left, const char* middle, const char* right_end) {
    for (int x = from; x <= to; ++x) at(x, y) = {x == from ? left : x == to ? right_end : middle, kFaint};
  }
  void put(int x, int y, const char* glyph, const char* style) { at(x, y) = {glyph, style}; }
  int height() const { return height_; }

  std::string str() const {
    std::string result;
    bool colours = wanted_colour() != Colour::never;
    for (int y = 0; y < height_; ++y) {
      const char* style = kPlain;
      for (int x = 0; x < width_; ++x) {
        const Cell& cell = cells_[index(x, y)];
        if (colours && std::strcmp(style, cell.style) != 0) {
          style = cell.style;
          result += fmt::format("\033[{}m", style);
        }
        result += cell.glyph;
      }
      if (std::strcmp(style, kPlain) != 0) result += "\033[0m";
      if (y + 1 < height_) result += "\n";
    }
    return result;
  }

 private:
  struct Cell {
    std::string glyph = " ";
    const char* style = kPlain;
  };
  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
  }
  Cell& at(int x, int y) { return cells_[index(x, y)]; }

  int width_;
  int height_;
  std::vector<Cell> cells_;
};

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::string percent(double part, double whole) {
  return fmt::format("{:.1f}%", share(part, whole) * 100);
}

std::string ago(double seconds) {
  return seconds < 0 ? "not in this session" : format_duration(seconds) + " ago";
}

// How far the nearest limit is: the one that ends the campaign first.
struct Outlook {
  double done = -1;  // share of it; negative: there is no limit
  double eta = -1;   // seconds; negative: unknown
  std::string text;
};

Outlook outlook(const CampaignStatus& s) {
  const CampaignCounters& c = s.counters;
  const TimelinePoint* then = nullptr;
  for (const TimelinePoint& point : s.history) {
    if (then == nullptr || point.seconds <= s.seconds - kSlopeSeconds) then = &point;
  }
  Outlook nearest;
  auto consider = [&](double limit, double now, double before, const std::string& text) {
    if (limit <= 0) return;
    double elapsed = then == nullptr ? 0 : s.seconds - then->seconds;
    double slope = elapsed > 0 ? (now - before) / elapsed : 0;
    Outlook this_one{std::clamp(now / limit, 0.0, 1.0), slope > 0 ? std::max(0.0, limit - now) / slope : -1, text};
    bool sooner = this_one.eta >= 0 && (nearest.eta < 0 || this_one.eta < nearest.eta);
    if (nearest.done < 0 || sooner || (this_one.eta < 0 && nearest.eta < 0 && this_one.done > nearest.done))
      nearest = this_one;
  };
  auto count = [&](std::int64_t limit, std::int64_t now, std::int64_t CampaignCounters::*member, const char* unit) {
    consider(static_cast<double>(limit), static_cast<double>(now),
             then == nullptr ? 0 : static_cast<double>(then->*member), fmt::format("{} {}", format_count(limit), unit));
  };
  count(s.budget.iterations, c.iterations, &CampaignCounters::iterations, "iterations");
  count(s.budget.outputs, c.kept, &CampaignCounters::kept, "kept");
  count(s.budget.faults, c.faults, &CampaignCounters::faults, "faults");
  consider(s.budget.seconds, s.seconds, then == nullptr ? 0 : then->seconds, format_duration(s.budget.seconds));
  return nearest;
}

std::string covered_text(const CampaignCounters& c) {
  return c.coverable > 0 || c.covered > 0 ? coverage_text({c.covered, c.coverable}) : "not measured";
}

// One character a column, from the lowest value to the highest.
std::string sparkline(const std::vector<TimelinePoint>& history, int width, double (*value)(const TimelinePoint&)) {
  static constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (history.size() < 2 || width < 2) return "";
  double low = value(history.front()), high = low;
  for (const TimelinePoint& point : history) {
    low = std::min(low, value(point));
    high = std::max(high, value(point));
  }
  auto last = static_cast<double>(history.back().iterations);
  std::string result;
  std::size_t at = 0;
  for (int x = 0; x < width; ++x) {
    double iteration = last * (x + 1) / width;
    while (at + 1 < history.size() && static_cast<double>(history[at + 1].iterations) <= iteration) ++at;
    double height = high > low ? (value(history[at]) - low) / (high - low) : 0;
    result += kBlocks[static_cast<std::size_t>(std::clamp(std::lround(height * 7), 0L, 7L))];
  }
  return result;
}

class Painter {
 public:
  Painter(const CampaignStatus& status, int width, int height)
      : s_(status), c_(status.counters), canvas_(width, height), right_(width - 1), middle_(width / 2) {}

  std::string paint() {
    head();
    progress(3);
    faults(3);
    coverage(9);
    queue(9);
    yields(14);
    finds(14);
    frame();
    return canvas_.str();
  }

 private:
  void frame() {
    int bottom = canvas_.height() - 1;
    for (int y = 1; y < bottom; ++y) {
      canvas_.put(0, y, "│", kFaint);
      canvas_.put(right_, y, "│", kFaint);
      if (y > 2) canvas_.put(middle_, y, "│", kFaint);
    }
    divider(2, "┬", "progress", "faults");
    divider(8, "┼", "coverage", "queue");
    divider(13, "┼", "mutators", "latest faults");
    canvas_.line(bottom, 0, right_, "└", "─", "┘");
    canvas_.put(middle_, bottom, "┴", kFaint);
    canvas_.text(2, bottom, interrupted() ? " finishing this batch, then saving ... " : " Ctrl-C saves and stops ",
                 interrupted() ? kAlarm : kFaint);
    canvas_.line(0, 0, right_, "┌", "─", "┐");
    std::string what = interrupted()                          ? " stopping "
                       : s_.stage == CampaignStage::starting  ? " starting "
                       : s_.stage == CampaignStage::repeating ? " repeating "
                       : s_.stage == CampaignStage::finished  ? " finished "
                       : s_.resumed                           ? " running, resumed "
                                                              : " running ";
    int x = canvas_.text(2, 0, " galvani fuzz ", kTitle);
    canvas_.text(x, 0, " " + printable(s_.folder) + " ", kStrong, right_ - x - 22);
    canvas_.right(right_ - 1, 0, what, interrupted() ? kAlarm : kGood);
  }
  void divider(int y, const char* cross, const char* left, const char* right) {
    canvas_.line(y, 0, right_, "├", "─", "┤");
    canvas_.put(middle_, y, cross, kFaint);
    canvas_.text(2, y, fmt::format(" {} ", left), kTitle);
    canvas_.text(middle_ + 2, y, fmt::format(" {} ", right), kTitle);
  }
  void row(int x, int y, const char* label, const std::string& value, const char* style = kStrong,
           const std::string& more = "") {
    int end = x < middle_ ? middle_ : right_;
    canvas_.text(x, y, label, kLabel);
    int after = canvas_.text(x + 13, y, value, style, end - x - 14);
    if (!more.empty()) canvas_.text(after + 1, y, more, kPlain, end - after - 2);
  }

  void head() {
    const CampaignRecord& r = *s_.record;
    canvas_.text(2, 1,
                 printable(fmt::format("{} on {}, guide {}, generator {}, scheduler {}, seed {}",
                                       std::filesystem::path(r.model).filename().string(), r.data, r.settings.guide,
                                       short_generator(r.settings.generator),
                                       r.settings.scheduler.substr(0, r.settings.scheduler.find(':')), r.settings.seed),
                           300),
                 kPlain, right_ - 3);
  }
  void progress(int y) {
    Outlook o = outlook(s_);
    row(2, y, "iterations", format_count(c_.iterations), kStrong,
        s_.budget.iterations > 0 ? "of " + format_count(s_.budget.iterations) : "");
    row(2, y + 1, "time of work", format_duration(s_.seconds), kStrong,
        o.eta >= 0 ? "ETA " + format_duration(o.eta) : "");
    row(2, y + 2, "rate", format_rate(s_.rate), kStrong, "valid mutants/s");
    row(2, y + 3, "mutants", format_count(c_.mutants), kStrong,
        percent(static_cast<double>(c_.valid), static_cast<double>(c_.mutants)) + " valid");
    if (s_.stage == CampaignStage::repeating) {
      double done = share(static_cast<double>(c_.batches), static_cast<double>(s_.repeat_until));
      bar(2, y + 4, middle_ - 2, done,
          fmt::format("repeating {} of {}", format_count(c_.batches), format_count(s_.repeat_until)));
    } else if (o.done >= 0) {
      bar(2, y + 4, middle_ - 2, o.done, fmt::format("{:.0f}% of {}", o.done * 100, o.text));
    }
  }
  void bar(int from, int y, int end, double done, const std::string& text) {
    int width = std::max(4, end - from - static_cast<int>(columns_of(text).size()) - 1);
    int full = static_cast<int>(std::lround(done * width));
    for (int x = 0; x < width; ++x) canvas_.put(from + x, y, x < full ? "█" : "░", x < full ? kGood : kFaint);
    canvas_.text(from + width + 1, y, text, kPlain, end - from - width - 1);
  }
  void faults(int y) {
    int x = middle_ + 2;
    row(x, y, "seeds broken", format_count(s_.broken_seeds), s_.broken_seeds > 0 ? kAlarm : kStrong,
        fmt::format("of {} tried, {}", format_count(s_.tried_seeds),
                    percent(static_cast<double>(s_.broken_seeds), static_cast<double>(s_.tried_seeds))));
    row(x, y + 1, "faults", format_count(c_.faults), c_.faults > 0 ? kAlarm : kStrong,
        s_.not_a_number > 0 ? fmt::format("{} {}", format_count(s_.not_a_number), kNotANumberName)
                            : format_count(c_.distinct_faults) + " distinct");
    row(x, y + 2, "kept", format_count(c_.kept_faults), c_.kept_faults > 0 ? kAlarm : kStrong,
        fmt::format("RFT {:.4f}", share(static_cast<double>(c_.kept_faults), static_cast<double>(c_.kept))));
    std::int64_t found = std::count_if(s_.classes.begin(), s_.classes.end(), [](auto& c) { return c.faults > 0; });
    row(x, y + 3, "classes", fmt::format("{} of {}", found, s_.classes.size()), kStrong,
        "last fault " + ago(s_.since_fault));
    row(x, y + 4, "growth",
        sparkline(s_.history, right_ - x - 14, [](auto& p) { return static_cast<double>(p.faults); }), kAlarm);
  }
  void coverage(int y) {
    const std::string& guide = s_.record->settings.guide;
    row(2, y, "covered", covered_text(c_), kStrong,
        c_.coverable > 0 ? fmt::format("{} of {}", coverage_text({c_.covered, 0}), coverage_text({c_.coverable, 0}))
                         : "");
    row(2, y + 1, "guide", printable(guide), kPlain, c_.resets > 0 ? fmt::format("{} resets", c_.resets) : "");
    row(2, y + 2, "last kept", ago(s_.since_kept), kPlain, fmt::format("({})", counted(s_.picks_since_kept, "pick")));
    if (c_.covered > 0)
      row(2, y + 3, "growth", sparkline(s_.history, middle_ - 16, [](auto& p) { return p.coverage(); }), kGood);
  }
  void queue(int y) {
    int x = middle_ + 2;
    row(x, y, "corpus", format_count(s_.corpus), kStrong,
        fmt::format("{}, {} kept", counted(s_.seeds, "seed"), format_count(c_.kept)));
    row(x, y + 1, "never picked", format_count(s_.never_picked), kPlain,
        fmt::format("{} of them seeds", format_count(s_.seeds - s_.tried_seeds)));
    row(x, y + 2, "wrong seeds", format_count(s_.wrong_seeds), kPlain, "left out");
    row(x, y + 3, "close calls", format_count(c_.reexamined), kPlain, "judged again alone");
  }
  void yields(int y) {
    std::vector<YieldRecord> rows = s_.kinds;
    std::stable_sort(rows.begin(), rows.end(),
                     [](const YieldRecord& a, const YieldRecord& b) { return a.faults > b.faults; });
    int space = middle_ - 1;
    // Names matter more than how many of each were kept.
    bool roomy = space >= 48;
    int valid = roomy ? space - 25 : space - 16;
    canvas_.right(valid, y, "valid", kLabel);
    if (roomy) canvas_.right(space - 16, y, "kept", kLabel);
    canvas_.right(space - 7, y, "faults", kLabel);
    canvas_.right(space, y, "rate", kLabel);
    for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 10); ++i) {
      int at = y + 1 + static_cast<int>(i);
      if (at >= canvas_.height() - 1) break;
      const YieldRecord& r = rows[i];
      canvas_.text(2, at, r.name, kPlain, valid - 11);
      canvas_.right(valid, at, format_count(r.valid));
      if (roomy) canvas_.right(space - 16, at, format_count(r.kept));
      canvas_.right(space - 7, at, format_count(r.faults), r.faults > 0 ? kStrong : kFaint);
      canvas_.right(space, at, percent(static_cast<double>(r.faults), static_cast<double>(r.valid)));
    }
  }
  void finds(int y) {
    int x = middle_ + 2;
    auto name = [&](std::int64_t label) -> std::string {
      if (label == kNotANumber) return kNotANumberName;
      auto i = static_cast<std::size_t>(label);
      return i < s_.classes.size() ? printable(s_.classes[i].name, 12) : std::to_string(label);
    };
    for (std::size_t i = 0; i < s_.recent.size(); ++i) {
      int at = y + static_cast<int>(i);
      if (at >= canvas_.height() - 1) break;
      const FaultRecord& fault = s_.recent[i];
      int after = canvas_.text(x, at, name(fault.label) + " → ", kPlain);
      after = canvas_.text(after, at, name(fault.predicted), kAlarm);
      after = canvas_.text(std::max(after + 1, x + 9), at, fmt::format("{:3.0f}%", fault.confidence * 100), kFaint);
      canvas_.text(after + 2, at, printable(fault.rule), fault.kept() ? kStrong : kPlain, right_ - after - 3);
    }
    if (s_.recent.empty()) canvas_.text(x, y, "none yet", kFaint);
  }

  const CampaignStatus& s_;
  const CampaignCounters& c_;
  Canvas canvas_;
  int right_;
  int middle_;
};

}  // namespace

std::string render_status(const CampaignStatus& status, int width, int height) {
  if (width >= kLeastWidth && height >= kLeastHeight)
    return Painter(status, std::min(width, kMostWidth), std::min(height, 26)).paint();
  Outlook o = outlook(status);
  const CampaignCounters& c = status.counters;
  std::string line = fmt::format("{} of {} broke, {}, coverage {}, {}/s, {}", format_count(status.broken_seeds),
                                 counted(status.tried_seeds, "seed"), counted(c.faults, "fault"), covered_text(c),
                                 format_rate(status.rate), format_duration(status.seconds));
  if (o.eta >= 0) line += ", ETA " + format_duration(o.eta);
  Canvas canvas(std::max(1, width), 1);
  canvas.text(0, 0, line);
  return canvas.str();
}

namespace {

struct WindowSize {
  int width = 0;
  int height = 0;
  bool operator!=(const WindowSize& other) const { return width != other.width || height != other.height; }
};

WindowSize window_size() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_col, size.ws_row};
}

// Another screen, so that what was on the terminal comes back, and no cursor.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[2J";
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";

void send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

constexpr std::array<int, 3> kStopSignals = {SIGINT, SIGTERM, SIGHUP};
std::array<struct sigaction, kStopSignals.size()> stop_before;
struct sigaction suspend_before;

// The second Ctrl-C or SIGTERM ends the process at once, so the terminal is given back first.
void on_stop(int signal) {
  if (interrupted() && signal != SIGHUP) send(kLeave);
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    if (kStopSignals[i] != signal) continue;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): the system's own macros
    if (stop_before[i].sa_handler != SIG_DFL && stop_before[i].sa_handler != SIG_IGN) {
      stop_before[i].sa_handler(signal);
    } else if (stop_before[i].sa_handler == SIG_DFL) {
      send(kLeave);
      end_at_once(signal);
    }
  }
}

// Ctrl-Z: the terminal is given back while the process sleeps.
void on_suspend(int) {
  int kept = errno;
  send(kLeave);
  struct sigaction ours {};
  sigaction(SIGTSTP, &suspend_before, &ours);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTSTP);
  raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);  // it sleeps here
  sigaction(SIGTSTP, &ours, nullptr);
  send(kEnter);
  errno = kept;
}

class StatusScreen : public Listener {
 public:
  ~StatusScreen() override { leave(); }

  void started(const CampaignStatus& status) override {
    show(status);
    enter();
  }
  void batch(const CampaignStatus& status, const std::vector<FaultRecord>&) override { show(status); }
  void finished(const CampaignStatus& status, const std::string&) override { leave(); }

 private:
  static constexpr std::chrono::milliseconds kTick{100};
  static constexpr std::chrono::seconds kSlowTick{1};  // a batch may take long: the clock goes on meanwhile

  void show(const CampaignStatus& status) {
    std::lock_guard<std::mutex> guard(mutex_);
    status_ = status;
    changed_ = true;
    arrived_ = Clock::now();
  }

  void enter() {
    for (std::size_t i = 0; i < kStopSignals.size(); ++i) stop_before[i] = handle_signal(kStopSignals[i], on_stop);
    suspend_before = handle_signal(SIGTSTP, on_suspend);
    send(kEnter);
    // Signals go to the thread that works, so that a write of the painter is not cut in two.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    painter_ = std::thread([this] { paint_until_done(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void leave() {
    if (!painter_.joinable()) return;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    painter_.join();
    send(kLeave);
    for (std::size_t i = 0; i < kStopSignals.size(); ++i) sigaction(kStopSignals[i], &stop_before[i], nullptr);
    sigaction(SIGTSTP, &suspend_before, nullptr);
  }

  void paint_until_done() {
    std::unique_lock<std::mutex> lock(mutex_);
    Clock::time_point painted;
    WindowSize before;
    while (!done_) {
      WindowSize size = window_size();
      Clock::time_point now = Clock::now();
      bool resized = size != before;
      if (changed_ || resized || now - painted >= kSlowTick) {
        CampaignStatus status = status_;
        changed_ = false;
        double waited = std::chrono::duration<double>(now - arrived_).count();
        lock.unlock();
        if (status.stage == CampaignStage::running) status.seconds += waited;
        if (status.since_fault >= 0) status.since_fault += waited;
        if (status.since_kept >= 0) status.since_kept += waited;
        draw(status, size, resized);
        before = size;
        painted = now;
        lock.lock();
      }
      wake_.wait_for(lock, kTick, [this] { return done_; });
    }
  }

  // From the top, line by line, so that nothing flickers.
  static void draw(const CampaignStatus& status, const WindowSize& size, bool resized) {
    std::string frame = resized ? "\033[2J\033[H" : "\033[H";
    for (char c : render_status(status, size.width, size.height)) {
      if (c == '\n') {
        frame += "\033[K\r\n";
      } else {
        frame += c;
      }
    }
    send(frame + "\033[K");
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread painter_;
  CampaignStatus status_;
  Clock::time_point arrived_;
  bool changed_ = false;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Listener> make_screen_listener() {
  const char* terminal = std::getenv("TERM");
  bool capable = isatty(STDERR_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
  WindowSize size = capable ? window_size() : WindowSize();
  if (size.width < kLeastWidth || size.height < kLeastHeight) return make_progress_listener();
  return std::make_unique<StatusScreen>();
}

}  // namespace galvani::cli
