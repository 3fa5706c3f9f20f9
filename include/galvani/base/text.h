// Text that goes into files of a format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace galvani {

// For HTML, XML and SVG, between tags or inside the quotes of an attribute.
std::string escape_markup(std::string_view text);

// Comma-separated values with optional double quotes, as spreadsheets write them.
// A cell as text, quoted only if it must be.
std::string csv_cell(std::string_view text);
// The cells of one line (without its newline); a doubled quote inside quotes is one quote.
std::vector<std::string> split_csv_line(std::string_view line);

}  // namespace galvani
