// A folder of images in the making has this file in it until everything else is there.
#pragma once

namespace galvani {

inline constexpr const char* kIncompleteMark = "INCOMPLETE";

}  // namespace galvani
