#include "galvani/data/npy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"

namespace galvani {
namespace {

std::string npy(const std::string& header, const std::string& values) {
  std::string result = "\x93NUMPY";
  result += '\x01';
  result += '\0';
  result += static_cast<char>(header.size() & 0xff);
  result += static_cast<char>(header.size() >> 8);
  return result + header + values;
}

// What numpy.save(f, numpy.arange(6, dtype='<u2').reshape(2, 3)) writes.
TEST(Npy, ReadsWhatNumpyWrites) {
  std::string header = "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }";
  header += std::string(118 - header.size() - 1, ' ') + "\n";
  std::string values;
  for (char i = 0; i < 6; ++i) values += {i, '\0'};
  at::Tensor tensor = parse_npy(npy(header, values), "x");
  EXPECT_EQ(tensor.scalar_type(), at::kInt);
  EXPECT_TRUE(tensor.equal(at::arange(6, at::kInt).reshape({2, 3})));
}

TEST(Npy, WritesWhatNumpyWrites) {
  std::string bytes = npy_bytes(at::arange(3, at::kInt));
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }";
  header += std::string(118 - header.size() - 1, ' ') + "\n";
  EXPECT_EQ(bytes, npy(header, std::string("\0\0\0\0\1\0\0\0\2\0\0\0", 12)));
}

TEST(Npy, FortranOrderAndBigEndian) {
  std::string values("\0\0\0\1\0\0\0\4\0\0\0\2\0\0\0\5\0\0\0\3\0\0\0\6", 24);
  at::Tensor tensor = parse_npy(npy("{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3)}", values), "x");
  EXPECT_TRUE(tensor.equal(at::arange(1, 7, at::kInt).reshape({2, 3})));
}

TEST(Npy, EveryTypeComesBack) {
  TemporaryFolder folder;
  const std::vector<std::vector<std::int64_t>> shapes = {{}, {7}, {2, 3, 4}, {0, 5}};
  for (at::ScalarType type :
       {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kFloat, at::kDouble}) {
    for (const std::vector<std::int64_t>& shape : shapes) {
      at::Tensor tensor = at::rand(shape).mul(100).to(type);
      write_npy(folder / "a.npy", tensor);
      at::Tensor back = read_npy(folder / "a.npy");
      EXPECT_EQ(back.scalar_type(), type);
      EXPECT_TRUE(back.equal(tensor)) << toString(type) << at::IntArrayRef(shape);
    }
  }
}

TEST(Npz, NamesAndValuesComeBack) {
  TemporaryFolder folder;
  at::Tensor a = at::rand({30, 4});
  at::Tensor b = at::arange(5, at::kLong);
  for (Compression compression : {Compression::stored, Compression::deflate}) {
    write_npz(folder / "a.npz", {{"alpha", a}, {"beta", b}}, compression);
    auto back = read_npz(folder / "a.npz");
    ASSERT_EQ(back.size(), 2U);
    EXPECT_TRUE(back.at("alpha").equal(a));
    EXPECT_TRUE(back.at("beta").equal(b));
  }
}

TEST(Npy, SaysWhatIsWrong) {
  struct Case {
    std::string bytes;
    std::string message;
  };
  const std::string order = "'fortran_order': False, ";
  const Case cases[] = {
      {"", "x: is not an NPY file"},
      {"\x93NUMPY\x09", "x: is not an NPY file"},
      {npy("{'descr': '|O', " + order + "'shape': (1,)}", "abc"), "pickle"},
      {npy("{'descr': [('a', '<i4')], " + order + "'shape': (1,)}", ""), "structures"},
      {npy("{'descr': '<U5', " + order + "'shape': (1,)}", ""), "type '<U5'"},
      {npy("{'descr': '|u1', " + order + "'shape': (5,)}", "abc"), "5 bytes of values follow, but there are 3"},
      {npy("{'descr': '|u1', " + order + "'shape': (1,)}", "abc"), "1 bytes of values follow, but there are 3"},
      {npy("{'descr': '|u1', " + order + "'shape': (4294967296, 4294967296)}", ""), "impossibly large"},
      {npy("{'descr': '|u1', " + order + "'shape': (99999999999999999999999,)}", ""), "impossibly large"},
      {npy("{'descr': '|u1', " + order + "'shape': (0, 1152921504606846976)}", ""), "impossibly large"},
      {npy("{'descr': '|u1', " + order + "'shape': (-1,)}", ""), "malformed"},
      {npy("{'descr': '|u1', 'shape': (1,)}", "a"), "malformed"},
      {npy("{'descr': '<u8', " + order + "'shape': (1,)}", std::string(8, '\xff')), "does not fit"},
      {npy("{'descr'", ""), "malformed"},
  };
  for (const Case& each : cases) {
    try {
      parse_npy(each.bytes, "x");
      ADD_FAILURE() << "accepted: " << each.message;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_input);
      EXPECT_NE(std::string(e.what()).find(each.message), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace galvani
