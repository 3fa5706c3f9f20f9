#include "galvani/report/diff.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"
#include "report/testing.h"

namespace galvani {
namespace {

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  return all;
}

void name_classes(Network& network, const std::vector<std::string>& classes) {
  ModelCard card = network.card();
  card.class_names = classes;
  network.set_card(card);
}

// The same network with its outputs in another order: output k is the old one's output (k + 3) % 10.
std::unique_ptr<Network> turned(const Network& network) {
  std::unique_ptr<Network> result = network.clone();
  for (const NamedParameter& parameter : network.parameters()) {
    if (!parameter.shape.empty() && parameter.shape[0] == 10)
      result->set_parameter(parameter.name, network.parameter(parameter.name).roll(-3, 0));
  }
  return result;
}

class DiffTest : public ::testing::Test {
 protected:
  testing::FuzzedSubject subject_{names()};
};

TEST_F(DiffTest, FlipsByHand) {
  Network& network = *subject_.network;
  std::unique_ptr<Network> other = turned(network);
  at::Tensor said = predict(network, subject_.data.images).labels;
  // Without names class k is class k: every verdict moves by three.
  Dataset data = subject_.data;
  data.labels = said.clone();
  data.labels[0] = (said[0] + 7).remainder(10);  // what the other says
  data.labels[1] = (said[1] + 1).remainder(10);
  data.labels[2] = Labelled::kUnlabelled;
  Diff diff = diff_networks(network, data, *other, data);
  EXPECT_EQ(diff.flips[0], Flip::newly_right);
  EXPECT_EQ(diff.flips[1], Flip::other);
  EXPECT_EQ(diff.flips[2], Flip::other);
  EXPECT_EQ(diff.count(Flip::newly_wrong), diff.size() - 3);
  EXPECT_EQ(diff.labelled, diff.size() - 1);
  EXPECT_EQ(diff.right(diff.before), diff.size() - 3);
  EXPECT_EQ(diff.right(diff.after), 1);
  EXPECT_LT(diff.p, 1e-4);
  auto n = static_cast<double>(diff.labelled);
  Figures figures = figures_of(diff);
  EXPECT_DOUBLE_EQ(Gate("negative-flips>0%").value(figures), (n - 2) / n);
  EXPECT_DOUBLE_EQ(Gate("positive-flips>0").value(figures), 1);
  EXPECT_DOUBLE_EQ(Gate("agreement>0").value(figures), 0);
  std::int64_t inputs = 0;
  for (const ClassFlips& c : diff.by_class()) inputs += c.inputs;
  EXPECT_EQ(inputs, diff.labelled);
  // Of data without labels there is no right and wrong.
  data.labels.fill_(Labelled::kUnlabelled);
  diff = diff_networks(network, data, *other, data);
  EXPECT_EQ(diff.count(Flip::other), diff.size());
  EXPECT_EQ(names_of(figures_of(diff)), (std::vector<std::string>{"inputs", "flips", "flips%", "agreement"}));
}

TEST_F(DiffTest, ClassesAreMatchedByName) {
  Network& network = *subject_.network;
  std::unique_ptr<Network> other = turned(network);
  std::vector<std::string> order = names();
  std::rotate(order.begin(), order.begin() + 3, order.end());
  name_classes(network, names());
  name_classes(*other, order);
  Diff diff = diff_networks(network, subject_.data, *other, subject_.data);
  EXPECT_EQ(diff.count(Flip::none), diff.size());
  order[0] = "z";
  name_classes(*other, order);
  try {
    diff_networks(network, subject_.data, *other, subject_.data);
    FAIL() << "other classes were compared";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("has a class 'z'"), std::string::npos) << e.what();
  }
}

TEST_F(DiffTest, ThePageAndTheTableCannotBeDriven) {
  Network& network = *subject_.network;
  std::unique_ptr<Network> other = turned(network);
  Dataset data = subject_.data;
  data.files.assign(static_cast<std::size_t>(data.size()), "<script>\n=1,2");
  Diff diff = diff_networks(network, data, *other, data);
  std::string page = diff_page(diff, data);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_NE(page.find("Newly wrong"), std::string::npos);
  std::string table = diff_csv(diff);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), data.size() + 1);
}

}  // namespace
}  // namespace galvani
