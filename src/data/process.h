// Other programs, started without a shell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace galvani {

struct ProgramResult {
  int exit_code = 0;   // 128 + signal if a signal ended it
  std::string output;  // what it printed, standard error included
};

bool program_exists(const std::string& name);

// Runs arguments[0], found in PATH, in `folder` and waits. Ctrl-C ends the program and throws Error(interrupted).
ProgramResult run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

}  // namespace galvani
