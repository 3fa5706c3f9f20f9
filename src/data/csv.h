// Comma-separated values with optional double quotes, as spreadsheets write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace galvani {

// The cells of one line (without its newline); a doubled quote inside quotes is one quote.
std::vector<std::string> split_csv_line(std::string_view line);
// A cell as text, quoted only if it must be.
std::string csv_cell(const std::string& text);

}  // namespace galvani
