// Package managers run as programs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace galvani {

// Error(environment) unless the program is there; `package` is Debian's that has it.
void require_program(const std::string& program, const std::string& package, const std::string& what);
// Error(environment) with the last line of what it said, if it fails.
void run_or_fail(const std::vector<std::string>& command, const std::filesystem::path& folder, const std::string& what);
// The one file with this ending that a program left in a folder.
std::filesystem::path file_ending(const std::filesystem::path& folder, const std::string& extension,
                                  const std::string& what);

}  // namespace galvani
