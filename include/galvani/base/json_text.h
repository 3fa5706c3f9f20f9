// The only way JSON leaves the program: names and paths need not be UTF-8, JSON must be.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace galvani {

// What is no UTF-8 becomes U+FFFD; characters that drive a terminal are written as \uXXXX.
std::string json_text(const nlohmann::json& value, int indent = -1);
// As lines on standard output, at once: who reads them must not lose any when the process is killed.
void print_json(const nlohmann::json& value, int indent = -1);

}  // namespace galvani
