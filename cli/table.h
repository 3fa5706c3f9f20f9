// Text in columns.
#pragma once

#include <string>
#include <vector>

namespace galvani::cli {

enum class Align { left, right };

// A header, then rows as wide as the widest cell; `align` has an entry for each column. Ends with a newline.
std::string format_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                         const std::vector<Align>& align);

}  // namespace galvani::cli
