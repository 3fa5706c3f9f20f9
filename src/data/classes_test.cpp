#include "classes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"

namespace galvani {
namespace {

Labelled folders(std::vector<std::string> names, std::initializer_list<std::int64_t> labels) {
  Labelled data;
  data.name = "photos/";
  data.labels = at::tensor(std::vector<std::int64_t>(labels), at::kLong);
  data.class_names = std::move(names);
  data.sorted_classes = true;
  return data;
}

InputNeeds model_of(std::int64_t classes, std::vector<std::string> names = {}) {
  InputNeeds needs;
  needs.model = "m.onnx";
  needs.classes = classes;
  needs.class_names = std::move(names);
  return needs;
}

std::vector<std::int64_t> matched(Labelled data, const InputNeeds& needs, std::string* said = nullptr) {
  testing::internal::CaptureStderr();
  try {
    match_classes(data, needs);
  } catch (const Error& e) {
    testing::internal::GetCapturedStderr();
    if (said != nullptr) *said = e.what();
    return {};
  }
  std::string text = testing::internal::GetCapturedStderr();
  if (said != nullptr) *said = text;
  validate(data);
  const auto* labels = data.labels.data_ptr<std::int64_t>();
  return {labels, labels + data.labels.numel()};
}

using Labels = std::vector<std::int64_t>;

TEST(Classes, MatchIgnoringCaseAndPunctuation) {
  std::string said;
  InputNeeds needs = model_of(4, {"owl", "Great white shark, white shark", "dog", "cat"});
  EXPECT_EQ(matched(folders({"Cat", "great_white-shark"}, {0, 1, -1, 0}), needs, &said), (Labels{3, 1, -1, 3}));
  EXPECT_NE(said.find("photos/: classes matched by name: Cat → 3 cat, great_white-shark → 1 Great"), std::string::npos);
  EXPECT_EQ(matched(folders({"white shark"}, {0}), needs), (Labels{1}));
  // A folder without images need not be a class.
  EXPECT_EQ(matched(folders({"cat", "notes"}, {0, 0}), needs), (Labels{3, 3}));
  EXPECT_EQ(matched(folders({"cat", "kat"}, {0, 1}), needs, &said), Labels());
  EXPECT_NE(said.find("m.onnx has no class 'kat' (nearest is 'cat')"), std::string::npos) << said;
  EXPECT_EQ(matched(folders({"graet white shark"}, {0}), needs, &said), Labels());
  EXPECT_NE(said.find("(nearest is 'Great white shark, white shark')"), std::string::npos) << said;
  EXPECT_EQ(matched(folders({"2", "3"}, {0, 1}), needs), (Labels{2, 3}));
  // Nothing to say where names and numbers agree.
  EXPECT_EQ(matched(folders({"a", "b"}, {0, 1}), model_of(3, {"A", "B", "C"}), &said), (Labels{0, 1}));
  EXPECT_EQ(said, "");
  EXPECT_EQ(matched(folders({"crane"}, {0}), model_of(2, {"crane", "Crane"}), &said), Labels());
  EXPECT_NE(said.find("classes 0 and 1"), std::string::npos);
}

TEST(Classes, AnOrderThatWasGivenStays) {
  Labelled data = folders({"plane", "boat"}, {1, 0});
  data.sorted_classes = false;
  EXPECT_EQ(matched(data, model_of(2, {"x", "y"})), (Labels{1, 0}));
  EXPECT_EQ(matched(data, model_of(2, {"boat", "plane"})), (Labels{0, 1}));
  Labelled numbers = folders({}, {7, 2});
  EXPECT_EQ(matched(numbers, model_of(10, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})), (Labels{7, 2}));
}

TEST(Classes, AShiftIsAddedToNumbersAndNotToNames) {
  InputNeeds needs = model_of(5);
  needs.label_shift = 1;
  std::string said;
  EXPECT_EQ(matched(folders({}, {0, 3, -1}), needs, &said), (Labels{1, 4, -1}));
  EXPECT_NE(said.find("photos/: a label and 1 is the class of m.onnx"), std::string::npos) << said;
  Labelled given = folders({"plane", "boat"}, {1, 0});
  given.sorted_classes = false;
  EXPECT_EQ(matched(given, needs), (Labels{2, 1}));
  match_classes(given, needs);
  EXPECT_EQ(given.class_name(2), "boat") << "names move along";
  EXPECT_EQ(matched(folders({"0", "3"}, {0, 1}), needs), (Labels{1, 4})) << "folders called by numbers";
  EXPECT_EQ(matched(folders({"oak", "pine"}, {0, 1}), needs, &said), (Labels{1, 2}));
  EXPECT_NE(said.find("oak → 1, pine → 2"), std::string::npos) << said;
  needs.class_names = {"none", "cat", "dog", "cow", "hen"};
  EXPECT_EQ(matched(folders({"cow", "dog"}, {0, 1}), needs), (Labels{3, 2}));
  InputNeeds from_one = model_of(3);
  from_one.label_shift = -1;
  EXPECT_EQ(matched(folders({}, {1, 3}), from_one), (Labels{0, 2}));
  given = folders({"nothing", "plane", "boat"}, {2, 1});
  given.sorted_classes = false;
  match_classes(given, from_one);
  EXPECT_EQ(given.class_name(1), "boat");
  EXPECT_EQ(matched(folders({}, {1, 0}), from_one, &said), Labels());
  EXPECT_EQ(said, "photos/: has the label 0, which a label shift of -1 takes below 0");
}

TEST(Classes, NumbersInAnotherOrderAreNames) {
  EXPECT_EQ(matched(folders({}, {0, 2, -1, 1}), model_of(3, {"2", "0", "1"})), (Labels{1, 0, -1, 2}));
  EXPECT_EQ(matched(folders({}, {0, 2}), model_of(3, {"3", "0", "1"})), (Labels{0, 2})) << "no order of 0 to 2";
  EXPECT_EQ(matched(folders({}, {0, 3}), model_of(3, {"2", "0", "1"})), (Labels{0, 3})) << "to be refused later";
}

TEST(Classes, KnownListsBySize) {
  std::string said;
  EXPECT_EQ(matched(folders({"car", "dog"}, {0, 1}), model_of(10), &said), (Labels{1, 5}));
  EXPECT_NE(said.find("those of CIFAR-10, as m.onnx has 10 outputs"), std::string::npos) << said;
  EXPECT_NE(said.find("car → 1 automobile, dog → 5 dog"), std::string::npos) << said;
  EXPECT_EQ(matched(folders({"ankle boot", "tshirt"}, {0, 1}), model_of(10)), (Labels{9, 0}));
  EXPECT_EQ(matched(folders({"maple tree"}, {0}), model_of(100)), (Labels{47}));
  EXPECT_EQ(matched(folders({"goldfish", "toilet tissue"}, {0, 1}), model_of(1000)), (Labels{1, 999}));
  EXPECT_EQ(matched(folders({"goldfish"}, {0}), model_of(1001)), (Labels{2}));
  EXPECT_EQ(matched(folders({"10", "9"}, {0, 1}), model_of(12)), (Labels{10, 9}));
  EXPECT_EQ(matched(folders({"oak", "pine"}, {0, 1}), model_of(10), &said), (Labels{0, 1}));
  EXPECT_NE(
      said.find("does not name its 10 classes, so the 2 classes of the data are numbered in order: oak → 0, pine"),
      std::string::npos)
      << said;
}

}  // namespace
}  // namespace galvani
