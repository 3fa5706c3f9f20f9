// The text encoders that come with us; builtin.cpp lists them.
#pragma once

#include "galvani/semantics/text_encoder.h"

namespace galvani {

using TextEncoderEntry = TextEncoderRegistry::Entry;

TextEncoderEntry hash_encoder_entry();

}  // namespace galvani
