// Encoders of BERT's kind written as ONNX.
#pragma once

#include <cstdint>
#include <string>

#include "model/fetched/safetensors.h"

namespace galvani {

struct BertShape {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t layers = 0;
  std::int64_t inner = 0;  // of the feed-forward part
  std::int64_t words = 0;
  std::int64_t positions = 0;
  std::int64_t types = 0;
  double epsilon = 1e-12;

  // Of a config.json; Error(bad_input) naming `where` for what is no BERT, or has an activation other than exact GELU.
  static BertShape from_json(const std::string& text, const std::string& where);
};

// Takes input_ids, attention_mask and token_type_ids, [N, T] int64; gives last_hidden_state [N, T, hidden] and
// sentence_embedding [N, hidden]: the mean over the tokens that the mask has, of length 1. Tensors are named as in
// Hugging Face's files ("encoder.layer.0.attention.self.query.weight").
std::string bert_as_onnx(const std::string& name, const BertShape& shape, const SafeTensors& tensors,
                         const std::string& source, const std::string& licence);

}  // namespace galvani
