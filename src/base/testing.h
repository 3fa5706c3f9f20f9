// For tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "galvani/base/error.h"

namespace galvani {

// What the error says that `action` ends with, which must be of this kind; "" if there is none.
template <class Action>
std::string message_of(ErrorCode code, Action action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return "";
}

}  // namespace galvani
