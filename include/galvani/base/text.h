// Text that goes into files of a format, and what is counted for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace galvani {

// For HTML, XML and SVG, between tags or inside the quotes of an attribute. What no XML file may hold becomes U+FFFD.
std::string escape_markup(std::string_view text);

// Comma-separated values with optional double quotes, as spreadsheets write them.
// A cell that is text, not a number: quoted only if it must be. Spreadsheets take one that starts with = + - @ or white
// space for a formula, so it gets an apostrophe in front, by which they know text; split_csv_line takes it away again.
std::string csv_cell(std::string_view text);
// The same for tables that people look at and nothing reads back: it cannot drive a terminal either.
std::string csv_name(std::string_view text);
// The cells of one line (without its newline); a doubled quote inside quotes is one quote.
std::vector<std::string> split_csv_line(std::string_view line);

// Without white space at both ends.
std::string trimmed(const std::string& text);

// "1 image", "1,234 images"; `several` where it takes more than an s: "2 classes".
std::string counted(std::int64_t n, std::string_view one, std::string_view several = {});

// As a word of a command line that is shown to be typed: quoted only if a shell would read it otherwise.
std::string shell_word(std::string_view text);

}  // namespace galvani
