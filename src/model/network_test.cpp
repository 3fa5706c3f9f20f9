#include "galvani/model/network.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <torch/script.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::random_images;
using testing::scripted;
using testing::zoo_network;

TEST(Network, FindsLayersAndTheirNeurons) {
  auto network = zoo_network("lenet5");
  std::vector<std::string> names;
  std::int64_t neurons = 0;
  for (int i : network->select_taps("default")) {
    const Tap& tap = network->taps()[static_cast<std::size_t>(i)];
    names.push_back(tap.name);
    neurons += tap.neurons();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"conv1", "conv2", "fc1", "fc2", "fc3"}));
  EXPECT_EQ(neurons, 6 + 16 + 120 + 84 + 10);
  EXPECT_EQ(network->info().parameters, 61706);
  EXPECT_EQ(network->select_taps("relu").size(), 4U);
  EXPECT_EQ(network->select_taps("all").size(), 9U);
  EXPECT_EQ(network->select_taps("conv*,fc3").size(), 5U);  // conv1, conv2, their two activations, fc3
  EXPECT_NE(error_of([&] { network->select_taps("conv3"); }).find("did you mean 'conv"), std::string::npos);
}

TEST(Network, ModulesWithoutAWordAreCalledByKindAndNumber) {
  onnx::TestGraph g;
  g.input("x", {-1, 1, 4, 4});
  g.weight("0.weight", at::ones({2, 1, 3, 3}));
  g.node("Conv", {"x", "0.weight"}, {"c"}, "/0/Conv");
  g.node("Relu", {"c"}, {"r"}, "/1/Relu");
  onnx::TestGraph::set(g.node("Flatten", {"r"}, {"f"}), "axis", 1);
  g.weight("3.0.weight", at::ones({5, 8}));
  g.weight("3.0.bias", at::ones({5}));
  onnx::TestGraph::set(g.node("Gemm", {"f", "3.0.weight", "3.0.bias"}, {"y"}, "/3/Gemm"), "transB", 1);
  g.output("y");
  Network::Options options;
  options.execution = {2, false};
  auto network = Network::from_onnx(g.bytes(), "sequential", options);
  std::vector<std::string> names;
  for (const Tap& tap : network->taps()) names.push_back(tap.name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv0", "conv0/relu", "dense3.0"}));
  for (const char* spec : {"conv0,conv0/relu,dense3.0", "0,0/relu,3.0", "conv*,3.0"})
    EXPECT_EQ(network->select_taps(spec), (std::vector<int>{0, 1, 2})) << spec;
  EXPECT_EQ(network->select_taps("0"), std::vector<int>{0});
}

TEST(Network, ActivationIsTheTapBeforeItRectified) {
  auto network = zoo_network("lenet5");
  Request request;
  request.taps = network->select_taps("conv1,conv1/relu");
  request.form = TapForm::full;
  Outputs out = network->run(random_images(*network, 5), request);
  EXPECT_TRUE(out.taps[0].lt(0).any().item<bool>());
  EXPECT_TRUE(at::equal(out.taps[0].relu(), out.taps[1]));
}

TEST(Network, InPlaceActivationDoesNotOverwriteTheTapBeforeIt) {
  at::manual_seed(1);
  auto network = scripted(R"(
    def forward(self, x):
        y = torch.conv2d(x, self.weight, None, [1, 1], [1, 1])
        z = torch.relu_(y)
        return torch.mean(z, [2, 3])
  )",
                          {{"weight", at::randn({4, 3, 3, 3})}});
  Request request;
  request.taps = network->select_taps("default");
  request.form = TapForm::full;
  EXPECT_TRUE(network->run(random_images(*network, 3), request).taps[0].lt(0).any().item<bool>());
}

TEST(Network, NeuronIsTheMeanOverSpace) {
  auto network = zoo_network("lenet5");
  at::Tensor images = random_images(*network, 7);
  Request request;
  request.taps = network->select_taps("conv2,fc1");
  Outputs means = network->run(images, request);
  request.form = TapForm::full;
  Outputs full = network->run(images, request);
  EXPECT_TRUE(at::allclose(means.taps[0], full.taps[0].mean(std::vector<std::int64_t>{2, 3}), 1e-5, 1e-6));
  EXPECT_TRUE(at::equal(means.taps[1], full.taps[1]));
}

TEST(Network, MaskOfOnesChangesNothingAndOfZeroSilences) {
  auto network = zoo_network("lenet5");
  at::Tensor images = random_images(*network, 6);
  Request plain;
  Request masked;
  int conv1 = network->select_taps("conv1")[0];
  masked.masks = {{conv1, at::ones({6})}};
  EXPECT_TRUE(at::equal(network->run(images, plain).logits, network->run(images, masked).logits));
  masked.masks = {{conv1, at::zeros({6})}};
  at::Tensor silent = network->run(images, masked).logits;
  EXPECT_TRUE(at::allclose(silent, silent[0].expand_as(silent)));  // nothing of the image passes
  // One mask per image: only the second image is silenced.
  at::Tensor each = at::ones({6, 6});
  each[1].zero_();
  masked.masks = {{conv1, each}};
  at::Tensor mixed = network->run(images, masked).logits;
  at::Tensor whole = network->run(images, plain).logits;
  EXPECT_TRUE(at::equal(mixed[0], whole[0]));
  EXPECT_TRUE(at::allclose(mixed[1], silent[1]));
  // Every channel of the layer matters to the result (dead ones would hide a broken mask).
  int differing = 0;
  for (int c = 0; c < 6; ++c) {
    at::Tensor one = at::ones({6});
    one[c] = 0;
    masked.masks = {{conv1, one}};
    differing += at::equal(network->run(images, masked).logits, whole) ? 0 : 1;
  }
  EXPECT_GE(differing, 4);
  masked.masks = {{conv1, at::ones({5})}};
  EXPECT_NE(error_of([&] { network->run(images, masked); }).find("mask of 'conv1'"), std::string::npos);
}

// Behind a batch norm whose offsets are not zero and a sigmoid, whose value at zero is not zero; and in front of a
// shortcut, which is not the layer's own.
TEST(Network, MasksAtTheEndSwitchALayerOff) {
  at::manual_seed(2);
  auto network = scripted(R"(
    def forward(self, x):
        a = torch.conv2d(x, self.a_weight, None, [1, 1], [1, 1])
        b = torch.batch_norm(a, self.scale, self.offset, self.mean, self.variance, False, 0.1, 1e-5, False)
        c = torch.sigmoid(b)
        d = torch.conv2d(c, self.d_weight, None, [1, 1], [1, 1]) * 2 + self.shift
        e = d * torch.sigmoid(d)
        return torch.mean(torch.relu(e + c), [2, 3])
  )",
                          {{"a_weight", at::randn({4, 3, 3, 3})},
                           {"d_weight", at::randn({4, 4, 3, 3})},
                           {"scale", at::rand({4}) + 1},
                           {"offset", at::rand({4}) + 1},
                           {"mean", at::zeros({4})},
                           {"variance", at::ones({4})},
                           {"shift", at::ones({4, 1, 1})}});
  at::Tensor images = random_images(*network, 5);
  auto only = [&](const char* name) { return network->select_taps(name)[0]; };
  Request plain;
  plain.taps = {only("a"), only("a/sigmoid"), only("d")};
  plain.form = TapForm::full;
  Outputs whole = network->run(images, plain);
  Request off = plain;
  off.masks_at_end = true;
  off.masks = {{only("a"), at::zeros({4})}};
  Outputs without_a = network->run(images, off);
  EXPECT_TRUE(at::equal(without_a.taps[0], whole.taps[0])) << "the tap stands in front of the mask";
  EXPECT_TRUE(at::equal(without_a.taps[2], at::zeros_like(without_a.taps[2])));
  off.masks = {{only("d"), at::zeros({4})}};
  Outputs without_d = network->run(images, off);
  at::Tensor rest = whole.taps[1].relu().mean(std::vector<std::int64_t>{2, 3});
  EXPECT_TRUE(at::allclose(without_d.logits, rest, 1e-5, 1e-6)) << "what is left is the shortcut";
  // Where they are, masks leave what BN and sigmoid make of zero.
  off.masks = {{only("a"), at::zeros({4})}};
  off.masks_at_end = false;
  EXPECT_GT(network->run(images, off).taps[1].min().item<double>(), 0.5);
  // A layer and its activation function are one.
  EXPECT_EQ(network->taps_with_own_end(network->select_taps("all")).size(),
            4U);  // a, d, the gate's function, the last activation
  std::vector<int> convolutions = zoo_network("lenet5")->select_taps("conv*");
  EXPECT_EQ(zoo_network("lenet5")->taps_with_own_end(convolutions), zoo_network("lenet5")->select_taps("conv1,conv2"));
}

TEST(Network, InputGradientMatchesFiniteDifferences) {
  at::manual_seed(1);
  auto network = zoo_network("lenet5");
  ModelCard card = network->card();
  card.preprocess.mean = {0.3};
  card.preprocess.deviation = {0.4};
  network->set_card(card);
  at::Tensor images = random_images(*network, 2).to(at::kFloat);
  Request request;
  request.objective = [](const Pass& pass) { return pass.logits.select(1, 3); };
  request.input_gradient = true;
  at::Tensor gradient = network->run(images, request).input_gradient;
  at::Tensor direction = at::randn(images.sizes());
  auto expected = (gradient * direction).sum().item<double>();
  constexpr double kStep = 0.05;
  auto value = [&](double t) { return network->run(images + direction * t).logits.select(1, 3).sum().item<double>(); };
  EXPECT_NEAR((value(kStep) - value(-kStep)) / (2 * kStep), expected, std::abs(expected) * 0.02 + 1e-4);
}

TEST(Network, TapAndMaskGradientsAgree) {
  auto network = zoo_network("lenet5");
  at::Tensor images = random_images(*network, 5);
  int tap = network->select_taps("conv2")[0];
  Request request;
  request.taps = {tap};
  request.form = TapForm::full;
  request.masks = {{tap, at::ones({16})}};
  request.objective = [](const Pass& pass) { return pass.logits.select(1, 0); };
  request.tap_gradients = request.mask_gradients = true;
  Outputs out = network->run(images, request);
  // d/dmask of mask·tap at mask = 1 is the sum over space of gradient times value.
  at::Tensor expected = (out.tap_gradients[0] * out.taps[0]).sum(std::vector<std::int64_t>{2, 3});
  EXPECT_TRUE(at::allclose(out.mask_gradients[0], expected, 1e-4, 1e-5));
  EXPECT_TRUE(out.mask_gradients[0].ne(0).any().item<bool>());
}

// Everything a request can return, one after the other.
std::vector<at::Tensor> everything(Network& network, const at::Tensor& images) {
  Request request;
  request.taps = network.select_taps("default");
  request.objective = [](const Pass& pass) { return pass.logits.logsumexp(1); };
  request.input_gradient = request.tap_gradients = true;
  Outputs out = network.run(images, request);
  std::vector<at::Tensor> all = {out.logits, out.objective, out.input_gradient};
  all.insert(all.end(), out.taps.begin(), out.taps.end());
  all.insert(all.end(), out.tap_gradients.begin(), out.tap_gradients.end());
  return all;
}

TEST(Network, SameBitsForAnyNumberOfWorkers) {
  for (const char* name : {"lenet5", "resnet20:width=8"}) {
    auto network = zoo_network(name, {16, false});
    at::Tensor images = random_images(*network, 1000);
    set_workers(1);
    std::vector<at::Tensor> one = everything(*network, images);
    for (int workers : {2, 4}) {
      set_workers(workers);
      std::vector<at::Tensor> many = everything(*network, images);
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], many[i])) << name << " " << i;
    }
  }
}

TEST(Network, BatchSizesAgreeClosely) {
  for (const char* name : {"lenet5", "resnet20:width=8"}) {
    at::Tensor images;
    at::Tensor reference;
    for (Execution form : {Execution{1, false}, Execution{7, false}, Execution{32, false}, Execution{32, true}}) {
      auto network = zoo_network(name, form);
      if (!images.defined()) images = random_images(*network, 40);
      at::Tensor logits = network->run(images).logits;
      if (!reference.defined()) reference = logits;
      EXPECT_LT((logits - reference).abs().max().item<double>(), 1e-5 * reference.abs().max().item<double>())
          << name << " " << form.micro_batch;
    }
  }
}

TEST(Network, CanonicalFormDoesNotDependOnContext) {
  Request alone;
  alone.alone = true;
  for (Execution form : {Execution{8, false}, Execution{16, true}}) {
    auto network = zoo_network("resnet20:width=8", form);
    at::Tensor images = random_images(*network, 21);
    at::Tensor all = network->run(images, alone).logits;
    at::Tensor backwards = network->run(images.flip({0}), alone).logits.flip({0});
    EXPECT_TRUE(at::equal(all, backwards));
    EXPECT_TRUE(at::equal(all[13], network->run(images.narrow(0, 13, 1), alone).logits[0]));
  }
}

TEST(Network, RefusesImagesOfAnotherShape) {
  auto network = zoo_network("lenet5");
  std::string message = error_of([&] { network->run(at::zeros({2, 3, 28, 28}, at::kByte)); });
  EXPECT_NE(message.find("3x28x28"), std::string::npos);
  EXPECT_EQ(network->run(at::zeros({0, 1, 28, 28}, at::kByte)).logits.size(0), 0);
}

TEST(Network, SavedFileGivesTheSameBits) {
  at::manual_seed(1);
  TemporaryFolder folder;
  auto onnx = zoo_network("resnet20:width=4", {8, false});
  auto script = scripted(R"(
    def forward(self, x):
        y = torch.relu(torch.conv2d(x, self.weight, None, [2, 2]))
        return torch.mean(y, [2, 3])
  )",
                         {{"weight", at::randn({6, 3, 3, 3})}});
  struct Case {
    Network* network;
    const char* file;
  };
  for (const Case& c : {Case{onnx.get(), "m.onnx"}, Case{script.get(), "m.pt"}}) {
    at::Tensor images = random_images(*c.network, 12);
    std::string weight = c.network->parameters()[0].name;
    c.network->set_parameter(weight, c.network->parameter(weight) * 1.25);
    ModelCard card = c.network->card();
    card.accuracy = 0.5;
    card.class_names.assign(static_cast<std::size_t>(c.network->info().classes), "x");
    c.network->set_card(card);
    Network::Options options;
    options.execution = c.network->execution();
    c.network->save(folder / c.file);
    auto again = Network::load(folder / c.file, options);
    EXPECT_TRUE(at::equal(c.network->run(images).logits, again->run(images).logits)) << c.file;
    EXPECT_EQ(again->card().to_json(), c.network->card().to_json());
    EXPECT_EQ(again->taps().size(), c.network->taps().size());
  }
}

TEST(Network, WeightsBesideTheFileArePartOfItsHash) {
  TemporaryFolder folder;
  Rng rng(1);
  ::onnx::ModelProto model;
  ASSERT_TRUE(
      model.ParseFromString(architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 10}, rng)));
  ::onnx::TensorProto& weight = *model.mutable_graph()->mutable_initializer(0);
  std::string bytes = weight.raw_data();
  ASSERT_GT(bytes.size(), 4U);
  weight.clear_raw_data();
  weight.set_data_location(::onnx::TensorProto::EXTERNAL);
  auto* entry = weight.add_external_data();
  entry->set_key("location");
  entry->set_value("weights.bin");
  write_file(folder / "model.onnx", model.SerializeAsString());
  auto hash = [&](const std::string& content) {
    write_file(folder / "weights.bin", content);
    return Network::load(folder / "model.onnx")->info().sha256;
  };
  std::string before = hash(bytes);
  EXPECT_EQ(hash(bytes), before);
  bytes[0] = static_cast<char>(bytes[0] ^ 1);
  EXPECT_NE(hash(bytes), before);
}

TEST(Network, NamesBothFormatsOfALayerAlike) {
  at::manual_seed(1);
  auto network = scripted(R"(
    def forward(self, x):
        y = torch.matmul(torch.flatten(x, 1), self.fc_weight.t()) + self.fc_bias
        return torch.relu(y)
  )",
                          {{"fc_weight", at::randn({5, 3 * 8 * 8})}, {"fc_bias", at::randn({5})}});
  ASSERT_EQ(network->taps().size(), 2U);
  EXPECT_EQ(network->taps()[0].name, "fc");
  EXPECT_EQ(network->taps()[0].kind, TapKind::dense);
  EXPECT_EQ(network->taps()[1].name, "fc/relu");
}

TEST(TorchScript, CodeThatTouchesFilesIsRefused) {
  at::manual_seed(1);
  TemporaryFolder folder;
  torch::jit::Module module("hostile");
  module.register_parameter("weight", at::randn({5, 3}), false);
  module.define("def forward(self, x):\n    y = torch.from_file('secret', False, 3)\n    return x + y\n");
  module.save((folder / "hostile.pt").string());
  EXPECT_NE(error_of([&] { Network::load(folder / "hostile.pt"); }).find("from_file"), std::string::npos);
}

TEST(TorchScript, DamagedArchiveIsRefused) {
  at::manual_seed(1);
  TemporaryFolder folder;
  auto network = scripted("    def forward(self, x):\n        return torch.linear(torch.flatten(x, 1), self.weight)\n",
                          {{"weight", at::randn({5, 3 * 8 * 8})}});
  network->save(folder / "good.pt");
  std::string good = read_file(folder / "good.pt");
  for (std::size_t cut : {std::size_t{10}, good.size() / 2, good.size() - 1}) {
    write_file(folder / "cut.pt", good.substr(0, cut));
    EXPECT_FALSE(error_of([&] { Network::load(folder / "cut.pt"); }).empty());
  }
  std::size_t inside = good.find("weight");
  ASSERT_NE(inside, std::string::npos);
  std::string flipped = good;
  flipped[inside] ^= 1;
  write_file(folder / "flipped.pt", flipped);
  EXPECT_NE(error_of([&] { Network::load(folder / "flipped.pt"); }).find("flipped.pt"), std::string::npos);
}

TEST(Evaluate, CloseCallsAreDecidedAlone) {
  at::manual_seed(1);
  // Two equal rows of weights: every verdict between the two classes hangs on the last bits.
  at::Tensor weight = at::randn({1, 3 * 8 * 8}).expand({2, 3 * 8 * 8}).contiguous();
  auto network = scripted("    def forward(self, x):\n        return torch.linear(torch.flatten(x, 1), self.weight)\n",
                          {{"weight", weight}});
  at::Tensor images = random_images(*network, 9);
  Predictions predictions = predict(*network, images);
  EXPECT_EQ(predictions.reexamined, 9);
  Request alone;
  alone.alone = true;
  EXPECT_TRUE(at::equal(predictions.logits, network->run(images, alone).logits));
}

TEST(Evaluate, SuspectsPreprocessing) {
  auto network = zoo_network("lenet5");
  Evaluation poor;
  poor.images = 1000;
  poor.accuracy = 0.11;
  ASSERT_TRUE(suspicious(*network, poor, "digits:test[0:9]").has_value());
  EXPECT_NE(suspicious(*network, poor, "digits:test[0:9]")->find("preprocessing"), std::string::npos);
  EXPECT_NE(suspicious(*network, poor, "digits:test[0:9]")
                ->find("`galvani inspect lenet5 --data 'digits:test[0:9]' --guess`"),
            std::string::npos);
  poor.accuracy = 0.02;
  EXPECT_NE(suspicious(*network, poor, "digits")->find("far below chance: inputs that were chosen"), std::string::npos);
  poor.accuracy = 0.6;
  EXPECT_TRUE(suspicious(*network, poor, "digits").has_value()) << "what is assumed may be wrong";
  poor.accuracy = 0.75;
  EXPECT_FALSE(suspicious(*network, poor, "digits").has_value());
  ModelCard card = network->card();
  card.preprocess_known = true;
  network->set_card(card);
  poor.accuracy = 0.6;
  EXPECT_FALSE(suspicious(*network, poor, "digits").has_value()) << "what is stated counts, and this is a weak model";
  card.accuracy = 0.98;
  network->set_card(card);
  poor.accuracy = 0.7;
  EXPECT_TRUE(suspicious(*network, poor, "digits:test[0:9]").has_value());
  poor.accuracy = 0.97;
  EXPECT_FALSE(suspicious(*network, poor, "digits:test[0:9]").has_value());
}

TEST(Evaluate, WhatIsAlwaysRightIsNotNearChance) {
  EXPECT_FALSE(near_chance(1, 0.5, 4));
  EXPECT_TRUE(near_chance(0.75, 0.5, 4));
  EXPECT_FALSE(near_chance(1, 1, 1000));
}

TEST(Evaluate, LabelsBeyondTheClassesAreRefused) {
  auto network = zoo_network("lenet5");
  Dataset data;
  data.name = "strange";
  data.images = random_images(*network, 3);
  data.labels = at::tensor({0, 10, 2}, at::kLong);
  EXPECT_NE(error_of([&] { evaluate(*network, data); }).find("strange: has the label 10"), std::string::npos);
}

}  // namespace
}  // namespace galvani
