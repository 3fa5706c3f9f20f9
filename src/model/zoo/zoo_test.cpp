#include "galvani/model/zoo.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <ostream>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/options.h"

namespace galvani {
namespace {

constexpr ArchitectureShape kMnist{1, 28, 28, 10};
constexpr ArchitectureShape kCifar{3, 32, 32, 10};
constexpr ArchitectureShape kImageNet{3, 224, 224, 1000};
constexpr ArchitectureShape kSecond{1, 0, 0, 10, 16000, 16000};  // of sound

std::string build(const std::string& spec, const ArchitectureShape& shape, std::uint64_t seed = 1) {
  Rng rng(seed);
  return architectures().create(Spec::parse(spec), shape, rng);
}

::onnx::ModelProto parse(const std::string& bytes) {
  ::onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

std::string refusal(const std::string& spec, const ArchitectureShape& shape) {
  try {
    build(spec, shape);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    return e.what();
  }
  return "";
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

struct Counts {
  std::int64_t trainable = 0;
  std::int64_t statistics = 0;  // running mean and variance, which Keras counts too
};

Counts count(const ::onnx::ModelProto& model) {
  Counts counts;
  for (const auto& tensor : model.graph().initializer()) {
    std::int64_t size = 1;
    for (std::int64_t dim : tensor.dims()) size *= dim;
    EXPECT_EQ(tensor.data_type(), ::onnx::TensorProto::FLOAT) << tensor.name();
    EXPECT_EQ(tensor.raw_data().size(), static_cast<std::size_t>(size) * sizeof(float)) << tensor.name();
    bool statistic = ends_with(tensor.name(), ".running_mean") || ends_with(tensor.name(), ".running_var");
    (statistic ? counts.statistics : counts.trainable) += size;
  }
  return counts;
}

std::map<std::string, std::vector<float>> weights(const ::onnx::ModelProto& model) {
  std::map<std::string, std::vector<float>> result;
  for (const auto& tensor : model.graph().initializer()) {
    std::vector<float>& values = result[tensor.name()];
    values.resize(tensor.raw_data().size() / sizeof(float));
    std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
  }
  return result;
}

const ::onnx::NodeProto& node(const ::onnx::ModelProto& model, const std::string& name) {
  for (const auto& candidate : model.graph().node()) {
    if (candidate.name() == name) return candidate;
  }
  throw std::out_of_range("no node " + name);
}

std::vector<std::int64_t> shape_after(const ::onnx::ModelProto& model, const std::string& layer) {
  std::vector<std::int64_t> shape;
  for (const auto& info : model.graph().value_info()) {
    if (info.name() != layer) continue;
    for (const auto& dim : info.type().tensor_type().shape().dim()) {
      if (dim.has_dim_value()) shape.push_back(dim.dim_value());
    }
  }
  return shape;
}

struct Case {
  std::string spec;
  ArchitectureShape shape;
  std::int64_t trainable;
  std::int64_t with_statistics;  // 0: not published
};

// Values are torchvision's for ImageNet shapes; those of He et al.'s nets, the LeNets, VGG and SADL are checked against
// table I of the Revisiting study and table 1 of DeepSensor, whose authors count with Keras.
const Case kCases[] = {
    // 4·25+4, 12·4·25+12, then 192 or 588 features to 10 classes.
    {"lenet1", kMnist, 3246, 3246},
    {"lenet1:padding=same", kMnist, 7206, 7206},
    // 6·25+6, 16·6·25+16, 256 or 784 to 84, 84 to 10.
    {"lenet4", kMnist, 25010, 25010},
    {"lenet4:padding=same", kMnist, 69362, 69362},
    // The same convolutions, 400 (classic), 256 or 784 to 120, 120 to 84, 84 to 10.
    {"lenet5", kMnist, 61706, 61706},
    {"lenet5", {1, 32, 32, 10}, 61706, 61706},
    {"lenet5", kCifar, 62006, 62006},
    {"lenet5:padding=valid", kMnist, 44426, 44426},
    {"lenet5:padding=same", kMnist, 107786, 107786},
    {"sadl1", kCifar, 6530250, 6531786},
    {"sadl2", kCifar, 1646282, 1646794},
    {"sadl3", kCifar, 2919082, 2923050},
    // 640 + 36,928 + (12·12·64)·128+128 + 1,290: SADL's own MNIST net.
    {"sadl2:bn=false", kMnist, 1218634, 1218634},
    // Convolutions 14,714,688; batch norm 2·4,224; head 2·(512·512+512) + 5,130.
    {"vgg16", kCifar, 14714688 + 530442, 0},
    {"vgg16:bn=true", kCifar, 14714688 + 8448 + 530442, 0},
    {"vgg16:bn=true,head=linear", kCifar, 14714688 + 8448 + 5130, 0},
    {"vgg16:bn=true,head=linear,width=16", kCifar, 920784 + 2112 + 1290, 0},
    // 4096-wide head with batch norm on its 4,096 + 4,096 + 10 outputs, as in the Revisiting study.
    {"vgg16:bn=true,head=large,head_bn=true", kCifar, 33663070, 33687922},
    // Three convolutions more than VGG-16: one of 256 (590,080) and two of 512 (2,359,808 each).
    {"vgg19", kCifar, 14714688 + 590080 + 2 * 2359808 + 530442, 0},
    {"vgg19:bn=true", kCifar, 14714688 + 590080 + 2 * 2359808 + 2 * (4224 + 256 + 1024) + 530442, 0},
    {"resnet20", kCifar, 269722, 0},
    {"resnet20:shortcut=conv,bias=true", kCifar, 273066, 274442},
    {"resnet32", kCifar, 464154, 0},
    {"resnet56", kCifar, 853018, 0},
    {"resnet56:shortcut=B", kCifar, 855770, 860026},
    {"resnet18", kImageNet, 11689512, 0},
    {"resnet18", kCifar, 11173962, 0},
    {"resnet34", kImageNet, 21797672, 0},
    {"resnet34", {1, 64, 100, 10}, 21797672 - 990 * 513 - 2 * 64 * 49, 0},
    {"resnet50", kImageNet, 25557032, 0},
    {"resnet50", kCifar, 23520842, 0},
    {"mobilenet_v2", kImageNet, 3504872, 0},
    {"mobilenet_v2", kCifar, 3504872 - 990 * 1281, 0},
    {"mobilenet_v2:width=0.5", kImageNet, 1968680, 0},
    // Batch norm of 32 bands, convolutions of three moments without bias, each with batch norm, 32·10+10.
    {"audionet", kSecond, 210634, 0},
    // A quarter of ResNet-34's widths on one channel, batch norm of 64 bands.
    {"resnet34-sound", kSecond, 1335098, 0},
    // 5x5 and two 3x3 of 16, 32, 64 and 128; 4 of 64 bands are left: 512 to 128, 128 to 10.
    {"deep-speaker", kSecond, 729402, 0},
};

void expect_well_formed(const ::onnx::ModelProto& model, const ArchitectureShape& shape) {
  const ::onnx::GraphProto& graph = model.graph();
  EXPECT_EQ(model.producer_name(), "galvani");
  ASSERT_EQ(model.opset_import_size(), 1);
  EXPECT_EQ(model.opset_import(0).version(), 13);

  ASSERT_EQ(graph.input_size(), 1);
  EXPECT_EQ(graph.input(0).name(), "input");
  const auto& in = graph.input(0).type().tensor_type().shape();
  ASSERT_EQ(in.dim_size(), shape.length > 0 ? 3 : 4);
  EXPECT_EQ(in.dim(0).dim_param(), "N");
  EXPECT_EQ(in.dim(1).dim_value(), shape.channels);
  EXPECT_EQ(in.dim(2).dim_value(), shape.length > 0 ? shape.length : shape.height);
  if (shape.length == 0) {
    EXPECT_EQ(in.dim(3).dim_value(), shape.width);
  }
  ASSERT_EQ(graph.output_size(), 1);
  EXPECT_EQ(graph.output(0).name(), "logits");
  const auto& out = graph.output(0).type().tensor_type().shape();
  ASSERT_EQ(out.dim_size(), 2);
  EXPECT_EQ(out.dim(0).dim_param(), "N");
  EXPECT_EQ(out.dim(1).dim_value(), shape.classes);

  // Every value is made once and before it is used, and every weight is used.
  std::set<std::string> known = {"input"};
  std::set<std::string> used;
  std::set<std::string> nodes;
  for (const auto& tensor : graph.initializer()) EXPECT_TRUE(known.insert(tensor.name()).second) << tensor.name();
  for (const auto& step : graph.node()) {
    EXPECT_TRUE(nodes.insert(step.name()).second) << step.name();
    for (const std::string& name : step.input()) {
      EXPECT_EQ(known.count(name), 1U) << step.name() << " reads " << name;
      used.insert(name);
    }
    for (const std::string& name : step.output()) EXPECT_TRUE(known.insert(name).second) << name;
  }
  for (const std::string& name : known) EXPECT_TRUE(name == "logits" || used.count(name) == 1) << name;
}

class Zoo : public ::testing::TestWithParam<Case> {};

TEST_P(Zoo, IsAWellFormedGraphWithTheKnownNumberOfParameters) {
  const Case& c = GetParam();
  ::onnx::ModelProto model = parse(build(c.spec, c.shape));
  expect_well_formed(model, c.shape);
  Counts counts = count(model);
  EXPECT_EQ(counts.trainable, c.trainable);
  if (c.with_statistics != 0) {
    EXPECT_EQ(counts.trainable + counts.statistics, c.with_statistics);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Zoo, ::testing::ValuesIn(kCases), [](const auto& chosen) {
  const Case& c = chosen.param;
  std::string name = c.spec + "_" + std::to_string(c.shape.channels) + "_" + std::to_string(c.shape.width);
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
});

TEST(ZooTable, EveryArchitectureHasACase) {
  for (const std::string& name : architectures().names()) {
    bool found = false;
    for (const Case& c : kCases) found = found || Spec::parse(c.spec).name == name;
    EXPECT_TRUE(found) << name;
    EXPECT_FALSE(architectures().at(name).help.empty()) << name;
  }
}

TEST(ZooTable, RecordsTheFullSpecInTheFile) {
  ::onnx::ModelProto model = parse(build("resnet20:width=8", kCifar));
  ASSERT_EQ(model.metadata_props_size(), 1);
  EXPECT_EQ(model.metadata_props(0).key(), "galvani.architecture");
  EXPECT_EQ(model.metadata_props(0).value(), "resnet20:width=8,shortcut=A,bias=false");
}

TEST(ZooSize, SmallestImageBuildsAndOnePixelLessIsRefused) {
  const std::map<std::string, std::int64_t> least = {
      {"lenet1", 16},      {"lenet4", 16},
      {"lenet5", 12},      {"lenet5:padding=same", 4},
      {"sadl1", 6},        {"sadl2", 6},
      {"sadl3", 8},        {"vgg16", 16},
      {"vgg19", 16},       {"resnet20", 4},
      {"resnet32", 4},     {"resnet56", 4},
      {"resnet18", 8},     {"resnet34", 8},
      {"resnet50", 8},     {"resnet18:stem=imagenet", 32},
      {"mobilenet_v2", 8}, {"mobilenet_v2:stem=imagenet", 32},
  };
  for (const auto& [spec, side] : least) {
    EXPECT_EQ(refusal(spec, {1, side, side + 5, 10}), "") << spec;
    std::string name = Spec::parse(spec).name;
    EXPECT_EQ(refusal(spec, {1, side + 5, side - 1, 10}),
              fmt::format("{} needs images of at least {}x{}, not {}x{}", name, side, side, side + 5, side - 1));
  }
}

TEST(ZooSize, ImpossibleShapesAreRefused) {
  EXPECT_NE(refusal("lenet5", {0, 28, 28, 10}).find("0 channels"), std::string::npos);
  EXPECT_NE(refusal("lenet5", {1, 28, 28, 1}).find("1 classes"), std::string::npos);
  EXPECT_NE(refusal("lenet5", {1, 1 << 20, 28, 10}).find("rows of pixels"), std::string::npos);
  EXPECT_NE(refusal("resnet50:stem=cifar", {3, 32, 32, 1000000}).find("2 GiB"), std::string::npos);
  EXPECT_NE(refusal("vgg16:bm=true", kCifar).find("did you mean 'bn'"), std::string::npos);
}

TEST(ZooWeights, ComeFromTheSeedAlone) {
  std::string bytes = build("resnet20", kCifar, 7);
  EXPECT_EQ(bytes, build("resnet20", kCifar, 7));
  auto first = weights(parse(bytes));
  auto second = weights(parse(build("resnet20", kCifar, 8)));
  ASSERT_EQ(first.size(), second.size());
  EXPECT_NE(first["conv1.weight"], second["conv1.weight"]);
  EXPECT_NE(first["linear.weight"], second["linear.weight"]);
  EXPECT_EQ(first["bn1.running_var"], second["bn1.running_var"]);
}

TEST(ZooWeights, OfOneLayerDoNotDependOnTheOthers) {
  auto shallow = weights(parse(build("resnet20", kCifar)));
  auto deep = weights(parse(build("resnet32", kCifar)));
  EXPECT_EQ(shallow["layer3.0.conv2.weight"], deep["layer3.0.conv2.weight"]);
  EXPECT_EQ(shallow["linear.weight"], deep["linear.weight"]);
  EXPECT_NE(shallow["layer3.1.conv1.weight"], shallow["layer3.1.conv2.weight"]);
}

TEST(ZooWeights, HaveTheSpreadOfTheirInitialisation) {
  auto tensors = weights(parse(build("resnet20", kCifar)));
  double sum = 0;
  double squares = 0;
  const std::vector<float>& conv = tensors["layer3.1.conv1.weight"];
  for (float w : conv) {
    sum += w;
    squares += static_cast<double>(w) * w;
  }
  // Kaiming: deviation sqrt(2 / (64·9)) = 0.0589; 36,864 draws know it to 0.4%.
  auto n = static_cast<double>(conv.size());
  EXPECT_NEAR(sum / n, 0, 0.0015);
  EXPECT_NEAR(std::sqrt(squares / n), std::sqrt(2.0 / 576), 0.001);
  // Dense: uniform up to 1/sqrt(64).
  auto [low, high] = std::minmax_element(tensors["linear.weight"].begin(), tensors["linear.weight"].end());
  EXPECT_GE(*low, -0.125F);
  EXPECT_LT(*low, -0.12F);
  EXPECT_LE(*high, 0.125F);
  EXPECT_GT(*high, 0.12F);
  for (float w : tensors["bn1.weight"]) EXPECT_EQ(w, 1);
  for (float w : tensors["bn1.running_var"]) EXPECT_EQ(w, 1);
  for (float w : tensors["bn1.bias"]) EXPECT_EQ(w, 0);
  for (float w : tensors["bn1.running_mean"]) EXPECT_EQ(w, 0);
}

TEST(ZooLayers, StemFollowsTheImageUnlessTold) {
  EXPECT_EQ(shape_after(parse(build("resnet18", {3, 63, 63, 10})), "relu"), (std::vector<std::int64_t>{64, 63, 63}));
  ::onnx::ModelProto large = parse(build("resnet18", {3, 64, 64, 10}));
  EXPECT_EQ(shape_after(large, "relu"), (std::vector<std::int64_t>{64, 32, 32}));
  EXPECT_EQ(shape_after(large, "maxpool"), (std::vector<std::int64_t>{64, 16, 16}));
  EXPECT_EQ(shape_after(parse(build("resnet18:stem=cifar", {3, 64, 64, 10})), "layer4.1.relu2"),
            (std::vector<std::int64_t>{512, 8, 8}));
  EXPECT_EQ(shape_after(parse(build("mobilenet_v2", kCifar)), "features.18.2"),
            (std::vector<std::int64_t>{1280, 4, 4}));
  EXPECT_EQ(shape_after(parse(build("mobilenet_v2", kImageNet)), "features.18.2"),
            (std::vector<std::int64_t>{1280, 7, 7}));
}

TEST(ZooLayers, OptionAShortcutThinsAndPadsEvenly) {
  ::onnx::ModelProto model = parse(build("resnet20", kCifar));
  EXPECT_EQ(shape_after(model, "layer2.0.shortcut.subsample"), (std::vector<std::int64_t>{16, 16, 16}));
  EXPECT_EQ(shape_after(model, "layer2.0.shortcut.pad"), (std::vector<std::int64_t>{32, 16, 16}));
  const auto& pads = node(model, "layer2.0.shortcut.pad.pads").attribute(0).t().int64_data();
  EXPECT_EQ(std::vector<std::int64_t>(pads.begin(), pads.end()), (std::vector<std::int64_t>{0, 8, 0, 0, 0, 8, 0, 0}));
  EXPECT_EQ(node(model, "layer2.0.add").input(1), "layer2.0.shortcut.pad");
}

TEST(ZooLayers, TrainingLayersAreKept) {
  ::onnx::ModelProto model = parse(build("sadl2:dropout=0.25", kCifar));
  const ::onnx::NodeProto& dropout = node(model, "dropout2");
  EXPECT_EQ(dropout.op_type(), "Dropout");
  const ::onnx::TensorProto& ratio = node(model, dropout.input(1)).attribute(0).t();
  EXPECT_EQ(ratio.dims_size(), 0);
  EXPECT_EQ(ratio.float_data(0), 0.25F);
  EXPECT_EQ(node(model, "bn3").op_type(), "BatchNormalization");
  EXPECT_EQ(node(model, "bn3").input(0), "relu3");
  EXPECT_EQ(node(model, "fc2").input(0), "dropout2");
}

}  // namespace
}  // namespace galvani
