// Options of the generator `mix` that name generators.
#pragma once

namespace galvani {

inline constexpr const char* kFirstGenerator = "first";
inline constexpr const char* kSecondGenerator = "second";

}  // namespace galvani
