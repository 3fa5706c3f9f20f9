#include "model/fetched/tflite.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "galvani/base/error.h"
#include "galvani/model/network.h"

namespace galvani {
namespace {

// Writes flatbuffers front to back: a table's parts follow it, and offsets to them are filled in later.
class FlatWriter {
 public:
  struct Field {
    int id;
    std::function<std::size_t(FlatWriter&)> write;  // at the end; gives where the field points to
    std::int64_t number = 0;                        // or a number of `bytes` bytes
    int bytes = 0;
  };

  static Field number(int id, std::int64_t value, int bytes = 4) { return {id, nullptr, value, bytes}; }
  static Field integers(int id, const std::vector<std::int32_t>& values) {
    return {id, [values](FlatWriter& w) {
              std::size_t start = w.bytes_.size();
              w.put(values.size(), 4);
              for (std::int32_t value : values) w.put(static_cast<std::uint32_t>(value), 4);
              return start;
            }};
  }
  static Field raw(int id, const std::string& bytes) {
    return {id, [bytes](FlatWriter& w) {
              std::size_t start = w.bytes_.size();
              w.put(bytes.size(), 4);
              w.bytes_ += bytes;
              return start;
            }};
  }
  static Field table(int id, const std::vector<Field>& fields) {
    return {id, [fields](FlatWriter& w) { return w.table(fields); }};
  }
  static Field tables(int id, const std::vector<std::vector<Field>>& all) {
    return {id, [all](FlatWriter& w) {
              std::size_t start = w.bytes_.size();
              w.put(all.size(), 4);
              std::size_t list = w.bytes_.size();
              w.bytes_.resize(list + 4 * all.size());
              for (std::size_t i = 0; i < all.size(); ++i) {
                std::size_t place = w.begin_table(all[i]);
                w.set(list + 4 * i, place - (list + 4 * i), 4);
                w.fill_table(place, all[i]);
              }
              return start;
            }};
  }

  std::string file(const std::vector<Field>& root) {
    bytes_.assign(4, '\0');
    bytes_ += "TFL3";
    std::size_t place = begin_table(root);
    set(0, place, 4);
    fill_table(place, root);
    return bytes_;
  }

 private:
  void put(std::uint64_t value, int n) {
    bytes_.resize(bytes_.size() + static_cast<std::size_t>(n));
    set(bytes_.size() - static_cast<std::size_t>(n), value, n);
  }
  void set(std::size_t place, std::uint64_t value, int n) {
    std::memcpy(&bytes_[place], &value, static_cast<std::size_t>(n));
  }

  // The directory, then the table with room for its fields. Gives the table's place.
  std::size_t begin_table(const std::vector<Field>& fields) {
    int last = -1;
    for (const Field& field : fields) last = std::max(last, field.id);
    std::size_t directory = bytes_.size();
    put(4 + 2 * (static_cast<std::uint64_t>(last) + 1), 2);
    put(4 + 4 * fields.size(), 2);
    std::map<int, std::size_t> place_of;
    for (std::size_t i = 0; i < fields.size(); ++i) place_of[fields[i].id] = 4 + 4 * i;
    for (int id = 0; id <= last; ++id) put(place_of.count(id) > 0 ? place_of[id] : 0, 2);
    std::size_t place = bytes_.size();
    put(place - directory, 4);
    bytes_.resize(bytes_.size() + 4 * fields.size());
    return place;
  }
  void fill_table(std::size_t place, const std::vector<Field>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      std::size_t at = place + 4 + 4 * i;
      if (fields[i].bytes > 0) {
        set(at, static_cast<std::uint64_t>(fields[i].number), fields[i].bytes);
        continue;
      }
      set(at, fields[i].write(*this) - at, 4);
    }
  }
  std::size_t table(const std::vector<Field>& fields) {
    std::size_t place = begin_table(fields);
    fill_table(place, fields);
    return place;
  }

  std::string bytes_;
};

using FlatFields = std::vector<FlatWriter::Field>;

at::Tensor tflite_numbers(const std::vector<std::int64_t>& shape, double phase) {
  std::int64_t n = 1;
  for (std::int64_t side : shape) n *= side;
  return (at::arange(n, at::kFloat) * 0.9 + phase).sin().view(shape).contiguous();
}

struct TfliteWeights {
  at::Tensor first = tflite_numbers({4, 3, 3, 2}, 0), first_bias = tflite_numbers({4}, 1);  // [out, H, W, in]
  at::Tensor each = tflite_numbers({1, 3, 3, 4}, 2), each_bias = tflite_numbers({4}, 3);    // a filter a channel
  at::Tensor last = tflite_numbers({3, 1, 1, 4}, 4), last_bias = tflite_numbers({3}, 5);
};

FlatFields flat_tensor(const std::vector<std::int32_t>& shape, int flat_buffer, const std::string& name) {
  return {FlatWriter::integers(0, shape), FlatWriter::number(2, flat_buffer), FlatWriter::raw(3, name)};
}

FlatFields flat_buffer(const at::Tensor& t) {
  return {FlatWriter::raw(0, std::string(static_cast<const char*>(t.data_ptr()), t.nbytes()))};
}

FlatFields flat_operation(int code, const std::vector<std::int32_t>& inputs, int output, const FlatFields& options) {
  return {FlatWriter::number(0, code), FlatWriter::integers(1, inputs), FlatWriter::integers(2, {output}),
          FlatWriter::table(4, options)};
}

// 5x6 images of 2 channels: a convolution in steps of 2 with ReLU6, one of each channel, the mean, a 1x1 convolution
// for 3 classes, reshape, softmax.
std::string small_tflite(int softmax = 25, int activation = 3) {
  TfliteWeights w;
  FlatFields conv = {FlatWriter::number(1, 2), FlatWriter::number(2, 2), FlatWriter::number(3, activation, 1)};
  FlatFields each = {FlatWriter::number(1, 1), FlatWriter::number(2, 1), FlatWriter::number(3, 1),
                     FlatWriter::number(4, 1, 1)};
  FlatFields pool = {FlatWriter::number(3, 3), FlatWriter::number(4, 3)};
  FlatFields plain = {FlatWriter::number(1, 1), FlatWriter::number(2, 1)};
  std::vector<FlatFields> tensors = {flat_tensor({1, 5, 6, 2}, 0, "input"),
                                     flat_tensor({4, 3, 3, 2}, 1, "w0"),
                                     flat_tensor({4}, 2, "b0"),
                                     flat_tensor({1, 3, 3, 4}, 0, "Net/Net/Conv_0/Relu6"),
                                     flat_tensor({1, 3, 3, 4}, 3, "w1"),
                                     flat_tensor({4}, 4, "b1"),
                                     flat_tensor({1, 3, 3, 4}, 0, "Net/Net/Conv_1/Relu"),
                                     flat_tensor({1, 1, 1, 4}, 0, "Net/Pool/AvgPool"),
                                     flat_tensor({3, 1, 1, 4}, 5, "w2"),
                                     flat_tensor({3}, 6, "b2"),
                                     flat_tensor({1, 1, 1, 3}, 0, "Net/Logits/BiasAdd"),
                                     flat_tensor({1, 3}, 0, "Net/Reshape"),
                                     flat_tensor({1, 3}, 0, "Net/Softmax")};
  std::vector<FlatFields> operations = {flat_operation(0, {0, 1, 2}, 3, conv), flat_operation(1, {3, 4, 5}, 6, each),
                                        flat_operation(2, {6}, 7, pool),       flat_operation(0, {7, 8, 9}, 10, plain),
                                        flat_operation(3, {10, 11}, 11, {}),   flat_operation(4, {11}, 12, {})};
  std::vector<FlatFields> codes;
  for (int code : {3, 4, 1, 22, softmax}) codes.push_back({FlatWriter::number(0, code, 1)});
  std::vector<FlatFields> buffers = {{}};
  for (const at::Tensor& t : {w.first, w.first_bias, w.each, w.each_bias, w.last, w.last_bias})
    buffers.push_back(flat_buffer(t));
  FlatFields graph = {FlatWriter::tables(0, tensors), FlatWriter::integers(1, {0}), FlatWriter::integers(2, {12}),
                      FlatWriter::tables(3, operations)};
  return FlatWriter().file({FlatWriter::number(0, 3), FlatWriter::tables(1, codes), FlatWriter::tables(2, {graph}),
                            FlatWriter::tables(4, buffers)});
}

ModelCard tflite_card() {
  ModelCard made;
  made.architecture = "small";
  return made;
}

std::string tflite_refusal(const std::string& bytes) {
  try {
    tflite_as_onnx(bytes, "m", tflite_card());
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input);
    return e.what();
  }
  return "nothing was refused";
}

TEST(Tflite, BecomesOnnxThatComputesTheSame) {
  TfliteWeights w;
  auto network = Network::from_onnx(tflite_as_onnx(small_tflite(), "m", tflite_card()), "m", {});
  at::Tensor images = at::arange(2 * 2 * 5 * 6, at::kLong).mul(41).remainder(256).to(at::kByte).view({2, 2, 5, 6});
  at::Tensor x = images.to(at::kFloat) / 255;
  // "SAME": 5 rows in steps of 2 lack one before and behind, 6 columns one behind.
  x = at::conv2d(at::constant_pad_nd(x, {0, 1, 1, 1}), w.first.permute({0, 3, 1, 2}), w.first_bias, 2).clamp(0, 6);
  x = at::conv2d(x, w.each.permute({3, 0, 1, 2}), w.each_bias, 1, 1, 1, 4).relu();
  at::Tensor expected = x.mean({2, 3}).matmul(w.last.view({3, 4}).t()) + w.last_bias;
  EXPECT_TRUE(at::allclose(network->run(images).logits, expected, 1e-4, 1e-5));
  std::vector<std::string> names;
  for (const Tap& tap : network->taps()) names.push_back(tap.name);
  EXPECT_EQ(names.front(), "Conv_0");
  EXPECT_EQ(network->taps().back().kind, TapKind::dense);
}

TEST(Tflite, SaysWhatItCannotRead) {
  EXPECT_EQ(tflite_refusal(""), "m: is cut short");
  EXPECT_NE(tflite_refusal("nothing at all of that kind").find("m: "), std::string::npos);
  EXPECT_EQ(tflite_refusal(small_tflite(99)), "m: operator 99 of TFLite is not supported");
  EXPECT_EQ(tflite_refusal(small_tflite(25, 4)), "m: layer 'Conv_0' has activation 4, which is not supported");
}

// Whatever is cut off or changed, there is a sentence or a model, never anything worse.
TEST(Tflite, SurvivesDamage) {
  std::string whole = small_tflite();
  for (std::size_t n = 0; n < whole.size(); n += 5) tflite_refusal(whole.substr(0, n));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bits : {0x01, 0x80, 0xff}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ bits);
      tflite_refusal(changed);
    }
  }
}

}  // namespace
}  // namespace galvani
