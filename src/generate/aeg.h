// Options of the generator `aeg` that name files.
#pragma once

namespace galvani {

inline constexpr const char* kExampleNetwork = "model";
inline constexpr const char* kReferenceNetwork = "features";

}  // namespace galvani
