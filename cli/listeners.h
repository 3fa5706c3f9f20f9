// Who watches a campaign from the command line: a progress bar, a status screen, JSON lines.
#pragma once

#include <memory>
#include <string>

#include "galvani/fuzz/listener.h"
#include "verb.h"

namespace galvani::cli {

// A bar with rate, faults, coverage and corpus on standard error.
std::unique_ptr<Listener> make_progress_listener();
// A full screen on standard error, drawn again at most ten times a second; the bar where that is no terminal or a small
// one. The terminal is given back at the end, on an error, and when the process is stopped or suspended.
std::unique_ptr<Listener> make_screen_listener();
// What that screen shows: `height` lines at most, with colours; one line for a window that is too small.
std::string render_status(const CampaignStatus& status, int width, int height);
// News: at the start, about once a second, at the end. A program that takes them is told of every batch, with its new
// faults.
std::unique_ptr<Listener> make_json_listener(const Common& common);

}  // namespace galvani::cli
