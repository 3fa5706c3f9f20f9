// Progress of a long piece of work: a bar with rate and ETA on a terminal, a plain line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace galvani {

class Progress {
 public:
  // `total` 0: unknown. `unit` is what is counted ("images"). Draws on standard error.
  Progress(std::string title, std::int64_t total, std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::int64_t by = 1);
  void note(std::string text);  // short text behind the bar, such as the current loss
  void finish();

  static void set_enabled(bool enabled);  // --quiet and --json turn it off

  // While one lives, bars that are finished leave no line on a terminal: they stand between the rows of a table.
  class Passing {
   public:
    Passing();
    ~Passing();
    Passing(const Passing&) = delete;
    Passing& operator=(const Passing&) = delete;
  };

  // The bar as text, for `width` columns; pure, so that it can be tested.
  static std::string render(const std::string& title, std::int64_t done, std::int64_t total, const std::string& unit,
                            double seconds, const std::string& note, int width);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(bool last);

  std::string title_;
  std::int64_t total_;
  std::string unit_;
  std::string note_;
  std::int64_t done_ = 0;
  Clock::time_point start_;
  Clock::time_point drawn_;
  bool terminal_;
  bool finished_ = false;
};

// 75 → "1:15", 3700 → "1:01:40".
std::string format_duration(double seconds);
// 1234567 → "1,234,567".
std::string format_count(std::int64_t n);
// 12345.6 → "12,346", 0.12345 → "0.123".
std::string format_rate(double rate);
// 1536 → "1.5 KiB".
std::string format_bytes(std::uint64_t n);

}  // namespace galvani
