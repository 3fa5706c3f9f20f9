#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "galvani/base/files.h"
#include "galvani/mutate/engine.h"
#include "mutate/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::gray;
using testing::mutated;
using testing::picture;
using testing::values;

MutationContext with_style(const ImageShape& shape, const at::Tensor& image) {
  return {testing::image_type(shape), image.unsqueeze(0)};
}

TEST(Style, ColourTransferTakesMeanAndDeviation) {
  // Mean 20, deviation 10 becomes mean 110, deviation 30.
  at::Tensor image = gray({{10, 30, 10, 30}});
  MutationContext context = with_style({1, 1, 4}, gray({{80, 140, 140, 80}}));
  EXPECT_EQ(values(mutated("colour-transfer:image=0,strength=1", image, context)),
            (std::vector<int>{80, 140, 80, 140}));
  EXPECT_EQ(values(mutated("colour-transfer:image=0,strength=0.5", image, context)),
            (std::vector<int>{45, 85, 45, 85}));
  EXPECT_TRUE(mutated("colour-transfer:image=0,strength=0", image, context).equal(image));
}

TEST(Style, ColourTransferTreatsChannelsApart) {
  at::Tensor style = at::zeros({3, 2, 2}, at::kByte);
  style[0].fill_(200);
  at::Tensor styled = mutated("colour-transfer:image=0,strength=1", picture({3, 6, 6}), with_style({3, 6, 6}, style));
  EXPECT_TRUE(styled[0].equal(at::full({6, 6}, 200, at::kByte)));
  EXPECT_EQ(styled.slice(0, 1).max().item<int>(), 0);
}

TEST(Style, FourierTransferOfTheMeanAlone) {
  // With band 0 only the zeroth frequency is exchanged: the image is moved to the style's mean.
  at::Tensor image = gray({{100, 110}, {90, 100}});
  MutationContext context = with_style({1, 2, 2}, gray({{140, 160}, {150, 150}}));
  EXPECT_EQ(values(mutated("fourier-transfer:image=0,strength=1,band=0", image, context)),
            (std::vector<int>{150, 160, 140, 150}));
  EXPECT_EQ(values(mutated("fourier-transfer:image=0,strength=0.4,band=0", image, context)),
            (std::vector<int>{120, 130, 110, 120}));
}

TEST(Style, FourierTransferKeepsPhases) {
  // A cosine of amplitude 20 gets the amplitude 40 of a shifted one, and stays where it is.
  at::Tensor image = gray({{120, 100, 80, 100, 120, 100, 80, 100}}).expand({1, 8, 8}).contiguous();
  at::Tensor style = gray({{100, 140, 100, 60, 100, 140, 100, 60}}).expand({1, 8, 8}).contiguous();
  at::Tensor styled = mutated("fourier-transfer:image=0,strength=1,band=0.5", image, with_style({1, 8, 8}, style));
  EXPECT_EQ(values(styled[0][3]), (std::vector<int>{140, 100, 60, 100, 140, 100, 60, 100}));
}

TEST(Style, StrengthZeroChangesNothing) {
  at::Tensor image = picture({3, 20, 20});
  MutationContext context = with_style({3, 20, 20}, picture({3, 20, 20}, 9));
  for (const char* rule : {"fog:strength=0,seed=1", "rain:strength=0,seed=1", "snow:strength=0,seed=1",
                           "frost:strength=0,seed=1", "fourier-transfer:image=0,strength=0"})
    EXPECT_TRUE(mutated(rule, image, context).equal(image)) << rule;
}

TEST(Style, WeatherGrowsWithItsStrengthAndVariesWithItsSeed) {
  at::Tensor image = at::full({1, 40, 40}, 60, at::kByte);
  for (const char* name : {"fog", "rain", "snow", "frost"}) {
    auto mean = [&](const char* rest) {
      return mutated(name + std::string(rest), image).to(at::kDouble).mean().item<double>();
    };
    EXPECT_GT(mean(":strength=0.4,seed=1"), 60.5) << name;
    EXPECT_GT(mean(":strength=0.8,seed=1"), mean(":strength=0.4,seed=1") + 1) << name;
    EXPECT_FALSE(mutated(name + std::string(":strength=0.8,seed=1"), image)
                     .equal(mutated(name + std::string(":strength=0.8,seed=2"), image)))
        << name;
  }
}

TEST(Style, ASourceIsNeeded) {
  MutationContext none{SampleType::image(1, 8, 8), {}};
  EXPECT_NE(error_of([&] { MutatorSet("colour-transfer", none); }).find("style"), std::string::npos);
  EXPECT_NE(error_of([&] { MutatorSet("fog", none).parse("fourier-transfer:image=0,strength=1"); }), "");
  // A catalogue does without what it cannot use.
  EXPECT_EQ(MutatorSet("style", none).families().size(), 4U);
  EXPECT_EQ(MutatorSet("style", with_style({1, 8, 8}, picture({1, 8, 8}))).families().size(), 6U);
}

TEST(Style, AnImageBeyondTheSourceIsRefused) {
  MutationContext one = with_style({1, 8, 8}, picture({1, 8, 8}));
  MutatorSet set("style", one);
  EXPECT_NE(error_of([&] { set.parse("colour-transfer:image=1,strength=1"); }).find("no style image 1"),
            std::string::npos);
  EXPECT_NE(error_of([&] { MutatorSet("colour-transfer:image=0..3", one); }), "");
  EXPECT_NE(error_of([&] { set.parse("colour-transfer:strength=1"); }).find("image"), std::string::npos);
}

// image → 1 - image, for pixels on the 0..1 scale: a 1x1 convolution.
std::string negative_network(int channels, int size) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("negative");
  auto port = [&](onnx::ValueInfoProto* value, const char* name) {
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx::TensorProto::FLOAT);
    tensor->mutable_shape()->add_dim()->set_dim_param("n");
    for (int side : {channels, size, size}) tensor->mutable_shape()->add_dim()->set_dim_value(side);
  };
  port(graph.add_input(), "image");
  port(graph.add_output(), "styled");
  auto weight = [&](const char* name, const std::vector<int>& dims, const std::vector<float>& numbers) {
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (int n : dims) tensor.add_dims(n);
    for (float number : numbers) tensor.add_float_data(number);
  };
  std::vector<float> kernel(static_cast<std::size_t>(channels * channels), 0.0F);
  for (int c = 0; c < channels; ++c) kernel[static_cast<std::size_t>(c) * static_cast<std::size_t>(channels + 1)] = -1;
  weight("kernel", {channels, channels, 1, 1}, kernel);
  weight("bias", {channels}, std::vector<float>(static_cast<std::size_t>(channels), 1.0F));
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Conv");
  for (const char* name : {"image", "kernel", "bias"}) node.add_input(name);
  node.add_output("styled");
  return model.SerializeAsString();
}

TEST(Style, ANetworkOfOnesOwn) {
  TemporaryFolder folder;
  std::string path = (folder / "negative.onnx").string();
  write_file(path, negative_network(3, 8));
  std::string spec = "style-net:model=" + path + ",output=0..1";
  MutatorSet set(spec + ",strength=1/0", {SampleType::image(3, 8, 8), {}});
  at::Tensor image = picture({3, 8, 8});
  const Family& family = set.families().at(0);
  ASSERT_EQ(family.listed.size(), 2U);
  EXPECT_EQ(set.text(family.listed[0]), "style-net:model=" + path + ",strength=1,output=0..1");
  EXPECT_EQ(set.parse(set.text(family.listed[0])), family.listed[0]);
  EXPECT_TRUE(set.apply(family.listed[0], image).equal(255 - image));
  EXPECT_TRUE(set.apply(family.listed[1], image).equal(image));
  // Another network, or other preprocessing beside the same one, is another set.
  std::string before = set.files_sha256();
  EXPECT_EQ(before.size(), 64U);
  EXPECT_EQ(MutatorSet("nsgen", {SampleType::image(3, 8, 8), {}}).files_sha256(), "");
  std::string toml = (folder / "negative.toml").string();
  write_file(toml, "range = [0, 2]\n");
  EXPECT_NE(MutatorSet(spec, {SampleType::image(3, 8, 8), {}}).files_sha256(), before);
  std::filesystem::remove(toml);
  EXPECT_EQ(MutatorSet(spec, {SampleType::image(3, 8, 8), {}}).files_sha256(), before);
  write_file(path, negative_network(3, 16));
  EXPECT_NE(MutatorSet(spec, {SampleType::image(3, 8, 8), {}}).files_sha256(), before);
  write_file(path, negative_network(3, 8));
  // Of another size and gray: enlarged, turned, reduced.
  at::Tensor flat = at::full({1, 5, 7}, 100, at::kByte);
  EXPECT_TRUE(set.apply(family.listed[0], flat).equal(255 - flat));
  // A rule for another network is not applied with this one.
  EXPECT_NE(error_of([&] { set.parse("style-net:model=other.onnx,strength=1"); }).find("other.onnx"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              MutatorSet("style-net", {SampleType::image(3, 8, 8), {}});
            }).find("model="),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              MutatorSet(spec + ",style-net:model=b.onnx", {SampleType::image(3, 8, 8), {}});
            }).find("only one"),
            std::string::npos);
}

TEST(Style, ANetworkWorksOnManyThreads) {
  TemporaryFolder folder;
  std::string path = (folder / "negative.onnx").string();
  write_file(path, negative_network(1, 8));
  MutationEngine engine("style-net:output=0..1,strength=0.1/0.2,model=" + path, {SampleType::image(1, 8, 8), {}});
  std::vector<Parent> parents;
  for (std::uint64_t i = 0; i < 64; ++i) {
    at::Tensor image = picture({1, 8, 8}, i);
    parents.push_back({image, image, false, Rng(i)});
  }
  Mutants mutants = engine.mutate(parents);
  for (std::size_t i = 0; i < parents.size(); ++i) {
    at::Tensor alone = engine.set().apply(mutants.each[i].rule, parents[i].image);
    EXPECT_TRUE(mutants.images[static_cast<std::int64_t>(i)].equal(alone));
  }
  EXPECT_EQ(mutants.valid(), 64);
}

TEST(Style, FilesThatAreNoStyleNetworkAreRefused) {
  TemporaryFolder folder;
  auto refused = [&](const std::string& bytes) {
    write_file(folder / "x.onnx", bytes);
    try {
      MutatorSet("style-net:model=" + (folder / "x.onnx").string(), {SampleType::image(3, 8, 8), {}});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("").find("x.onnx"), std::string::npos);
  EXPECT_NE(refused("hello").find("x.onnx"), std::string::npos);
  onnx::ModelProto model;
  model.ParseFromString(negative_network(3, 8));
  // Three channels in, one out.
  auto& graph = *model.mutable_graph();
  graph.mutable_initializer(0)->set_dims(0, 1);
  graph.mutable_initializer(0)->mutable_float_data()->Truncate(3);
  graph.mutable_initializer(1)->set_dims(0, 1);
  graph.mutable_initializer(1)->mutable_float_data()->Truncate(1);
  EXPECT_NE(refused(model.SerializeAsString()).find("no style network"), std::string::npos)
      << refused(model.SerializeAsString());
}

}  // namespace
}  // namespace galvani
