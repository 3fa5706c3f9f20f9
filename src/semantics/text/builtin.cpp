// The table of text encoders.
#include "semantics/text/builtin.h"

namespace galvani {

const TextEncoderRegistry& text_encoders() {
  static const TextEncoderRegistry registry("text encoder", {hash_encoder_entry()});
  return registry;
}

}  // namespace galvani
