#include "model/graph_tools.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/onnx/test_graph.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;

constexpr const char* kInterpreter =
    "The following operation failed in the TorchScript interpreter.\n"
    "Traceback of TorchScript (most recent call last):\n"
    "  File \"<string>\", line 3, in forward\n"
    "    x2 = torch.relu(x1)\n"
    "    x3 = torch.reshape(x2, [2, 7])\n"
    "         ~~~~~~~~~~~~~ <--- HERE\n"
    "    return x3\n"
    "RuntimeError: shape '[2, 7]' is invalid for input of size 64\n";

TEST(FirstLine, NamesWhatFailedInTheInterpreter) {
  EXPECT_EQ(first_line(kInterpreter),
            "shape '[2, 7]' is invalid for input of size 64 (in 'x3 = torch.reshape(x2, [2, 7])')");
  EXPECT_EQ(first_line(kInterpreter, {{"x2", "relu1"}, {"x3", "flatten"}}),
            "node 'flatten': shape '[2, 7]' is invalid for input of size 64");
}

TEST(FirstLine, OfOtherMessagesIsTheFirst) {
  EXPECT_EQ(first_line("\n  what is wrong\nException raised from f at g.cpp:1\n"), "what is wrong");
  EXPECT_EQ(first_line(""), "no reason given");
  EXPECT_EQ(first_line("~~~ <--- HERE"), "~~~ <--- HERE");
  EXPECT_EQ(first_line("<--- HERE\nRuntimeError: odd"), "odd");
  EXPECT_EQ(first_line("one \x1b[31m line"), "one ?[31m line");
}

TEST(FirstLine, OfRealModelsNamesTheNode) {
  onnx::TestGraph graph;
  graph.input("image", {-1, 3, 8, 8});
  graph.node("Relu", {"image"}, {"positive"}, "activation");
  graph.weight("shape", at::tensor({2, 7}, at::kLong));
  graph.node("Reshape", {"positive", "shape"}, {"scores"}, "to \x1b[31mscores");
  graph.output("scores");
  std::string message = error_of([&] { Network::from_onnx(graph.bytes(), "odd.onnx", {}); });
  EXPECT_NE(message.find("odd.onnx: "), std::string::npos) << message;
  EXPECT_NE(message.find("node 'to ?[31mscores': shape '[2, 7]' is invalid"), std::string::npos) << message;
  message = error_of([] {
    testing::scripted("    def forward(self, x):\n        return torch.reshape(x, [2, 7])\n", {{"w", at::zeros({1})}});
  });
  EXPECT_NE(message.find("shape '[2, 7]' is invalid"), std::string::npos) << message;
  EXPECT_NE(message.find("torch.reshape(x, [2, 7])"), std::string::npos) << message;
}

}  // namespace
}  // namespace galvani
