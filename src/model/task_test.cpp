#include "galvani/model/task.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "galvani/base/error.h"
#include "galvani/model/answers.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::scripted;

Question regression(double tolerance, std::int64_t outputs = 2) {
  Question question;
  question.task = Task::regression;
  question.outputs = outputs;
  question.tolerance = tolerance;
  return question;
}

Question labels(double threshold) {
  Question question;
  question.task = Task::multi_label;
  question.outputs = 3;
  question.threshold = threshold;
  return question;
}

at::Tensor verdicts_of(const Question& question, const at::Tensor& answers, const at::Tensor& references) {
  return verdicts(question.scores(answers, references));
}

TEST(Task, NumbersBreakBeyondTheTolerance) {
  at::Tensor references = at::tensor({1.0F, -2.0F}).expand({5, 2});
  float nan = std::numeric_limits<float>::quiet_NaN();
  at::Tensor answers = at::tensor({1.0F, -2.0F, 1.5F, -2.0F, 1.25F, -2.75F, 0.4F, -2.0F, nan, -2.0F}).view({5, 2});
  // Half is what is allowed: on the border nothing is broken yet, and either output can break.
  at::Tensor said = verdicts_of(regression(0.5), answers, references);
  EXPECT_TRUE(at::equal(said, at::tensor({0, 0, 1, 1, -1}, at::kLong))) << said;
  EXPECT_TRUE(at::allclose(regression(0.5).deviations(answers, references).narrow(0, 0, 4),
                           at::tensor({0.0F, 0.5F, 0.75F, 0.6F})));
}

TEST(Task, AnAnswerThatIsItsReferenceHasASlope) {
  at::Tensor references = at::tensor({1.0F, -2.0F}).view({1, 2});
  at::Tensor answers = references.clone().requires_grad_(true);
  at::Tensor scores = regression(0.5).scores(answers, references);
  scores.select(1, Question::kBroken).sum().backward();
  EXPECT_GT(answers.grad().abs().max().item<float>(), 0);
}

TEST(Task, LabelsBreakWhenOneOfThemFlips) {
  at::Tensor references = at::tensor({1.0F, 0.0F, 1.0F}).expand({4, 3});
  at::Tensor answers =
      at::tensor({2.0F, -3.0F, 0.1F, 2.0F, -3.0F, -0.1F, 2.0F, 0.1F, 0.1F, -1.0F, 1.0F, -1.0F}).view({4, 3});
  EXPECT_TRUE(at::equal(verdicts_of(labels(0.5), answers, references), at::tensor({0, 1, 1, 1}, at::kLong)));
  EXPECT_TRUE(at::allclose(labels(0.5).deviations(answers, references), at::tensor({0.0F, 1.0F, 1.0F, 3.0F})));
  // At another threshold a weak yes is none: sigmoid(0.1) is 0.52.
  EXPECT_TRUE(at::equal(verdicts_of(labels(0.6), answers, references), at::tensor({1, 1, 1, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(labels(0.6).references_of(answers)[0], at::tensor({1.0F, 0.0F, 0.0F})));
}

TEST(Task, NamesAreReadBack) {
  for (Task task : {Task::classes, Task::binary, Task::multi_label, Task::regression})
    EXPECT_EQ(task_of(to_string(task)), task);
  EXPECT_FALSE(task_of("segmentation"));
}

class TaskNetwork : public ::testing::Test {
 protected:
  TaskNetwork() {
    at::manual_seed(3);
    weights_ = {{"weight", at::randn({1, 3 * 8 * 8}) * 0.2}, {"rows", at::randn({4, 3 * 8 * 8}) * 0.2}};
    images_ = at::randint(0, 256, {20, 3, 8, 8}, at::kByte);
  }
  // `end` of y [N, 1] and z [N, 4].
  std::unique_ptr<Network> load(const std::string& end, const CardFlags& flags = {}, bool any_task = true) const {
    Network::Options options = testing::script_options();
    options.flags = flags;
    options.any_task = any_task;
    return scripted(
        "    def forward(self, x):\n        y = torch.linear(torch.flatten(x, 1), self.weight)\n"
        "        z = torch.linear(torch.flatten(x, 1), self.rows)\n        " +
            end + "\n",
        weights_, options);
  }
  at::Tensor scores(const char* of) const {
    at::Tensor pixels = images_.to(at::kFloat).flatten(1) / 255;
    return pixels.matmul(weights_.at(of).t());
  }
  static CardFlags task(const std::string& name) {
    CardFlags flags;
    flags.task = name;
    return flags;
  }
  std::map<std::string, at::Tensor> weights_;
  at::Tensor images_;
};

TEST_F(TaskNetwork, OneProbabilityIsYesOrNo) {
  at::Tensor yes = scores("weight").sigmoid().squeeze(1);
  for (const char* end :
       {"return torch.sigmoid(y)", "return torch.sigmoid(y).squeeze(1)", "return torch.clamp(torch.sigmoid(y), 0., 1.)",
        // A sigmoid that no graph gives away.
        "return 1 / (1 + torch.exp(-20 * y))"}) {
    auto network = load(end, {}, /*any_task=*/false);
    bool hidden = std::string(end).find("exp") != std::string::npos;
    EXPECT_EQ(network->info().question.task, Task::binary) << end;
    EXPECT_EQ(network->info().classes, 2) << end;
    Predictions said = predict(*network, images_);
    at::Tensor wanted = hidden ? (scores("weight") * 20).sigmoid().squeeze(1) : yes;
    EXPECT_TRUE(at::allclose(said.probabilities.select(1, 1), wanted, 1e-3, 1e-4)) << end;
    EXPECT_TRUE(at::equal(said.labels, wanted.gt(0.5).to(at::kLong))) << end;
  }
}

TEST_F(TaskNetwork, TheThresholdDecidesAndConfidenceStaysTheModels) {
  at::Tensor yes = scores("weight").sigmoid().squeeze(1);
  double threshold = yes.median().item<double>() + 1e-4;
  CardFlags flags;
  flags.threshold = std::to_string(threshold);
  auto network = load("return torch.sigmoid(y)", flags);
  Predictions said = predict(*network, images_);
  EXPECT_TRUE(at::equal(said.labels, yes.gt(threshold).to(at::kLong)));
  EXPECT_TRUE(at::allclose(said.probabilities.select(1, 1), yes, 1e-3, 1e-5));
  // Retraining starts from the same two classes.
  EXPECT_TRUE(at::allclose(network->clone()->run(images_).logits, network->run(images_).logits));
}

TEST_F(TaskNetwork, OneScoreIsOneNumberUnlessSaidOtherwise) {
  auto network = load("return y");
  EXPECT_EQ(network->info().question.task, Task::regression);
  Request request;
  request.answers = true;
  EXPECT_TRUE(at::allclose(network->run(images_, request).answers, scores("weight"), 1e-4, 1e-5));
  auto binary = load("return y", task("binary"));
  EXPECT_TRUE(at::equal(predict(*binary, images_).labels, scores("weight").squeeze(1).gt(0).to(at::kLong)));
  // A number between 0 and 1 may be meant as one.
  auto bounded = load("return torch.sigmoid(y)", task("regression"));
  EXPECT_TRUE(at::allclose(bounded->run(images_, request).answers, scores("weight").sigmoid(), 1e-4, 1e-5));
}

TEST_F(TaskNetwork, WhoGivesNoReferencesRefusesThem) {
  std::string message = error_of([&] { load("return y", {}, /*any_task=*/false); });
  EXPECT_NE(message.find("its task is regression, which is not supported here"), std::string::npos) << message;
  message = error_of([&] { load("return torch.sigmoid(z)", task("multi-label"), /*any_task=*/false); });
  EXPECT_NE(message.find("its task is multi-label"), std::string::npos) << message;
  auto network = load("return y");
  message = error_of([&] { predict(*network, images_); });
  EXPECT_NE(message.find("its task is regression"), std::string::npos) << message;
  message = error_of([&] { load("return y", task("classes")); });
  EXPECT_NE(message.find("has one output, so there are no classes"), std::string::npos) << message;
  message = error_of([&] { load("return z", task("binary")); });
  EXPECT_NE(message.find("has 4 outputs"), std::string::npos) << message;
  message = error_of([&] { load("return torch.softmax(z, 1)", task("multi-label")); });
  EXPECT_NE(message.find("ends in a softmax"), std::string::npos) << message;
}

TEST_F(TaskNetwork, OutputsThatAreNoAnswersAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"return z.reshape(-1, 1, 2, 2)", "a map of 1 score for each of 2x2 places, as of segmentation"},
      {"return z.reshape(-1, 2, 2)", "a list of 2 rows of 2 numbers, as of an object detector"},
      {"return z.argmax(1)", "classes already chosen"},
      {"return z / torch.norm(z, 2, 1, True)", "as of an embedding"},
      {"return torch.conv2d(x, self.rows.reshape(4, 3, 8, 8)[:, :, :3, :3].repeat(250, 1, 1, 1)).flatten(1)",
       "a map of 1,000 numbers for each of 6x6 places"}};
  for (const auto& one : cases) {
    std::string message = error_of([&] { load(one.first); });
    EXPECT_NE(message.find(one.second), std::string::npos) << one.first << ": " << message;
  }
}

TEST_F(TaskNetwork, TheOutputThatCountsIsChosen) {
  CardFlags second;
  second.output = "1";
  EXPECT_EQ(load("return y, z", second)->info().question.outputs, 4);
  EXPECT_EQ(load("return y, z")->info().question.outputs, 1);
  second.output = "2";
  std::string message = error_of([&] { load("return y, z", second); });
  EXPECT_NE(message.find("has no output 2"), std::string::npos) << message;
}

TEST_F(TaskNetwork, DataSayWhatIsAsked) {
  auto data = [&](const at::Tensor& answers) {
    return Labelled{"data", at::full({20}, Labelled::kUnlabelled, at::kLong), {}, {}, false, answers};
  };
  at::Tensor single = at::zeros({20, 4});
  single.select(1, 2).fill_(1);
  Labelled one = data(single);
  auto network = load("return z");
  settle_task(*network, one);
  EXPECT_EQ(network->info().question.task, Task::classes);
  EXPECT_TRUE(at::equal(one.labels, at::full({20}, 2, at::kLong)));
  at::Tensor several = single.clone();
  several.select(1, 0).fill_(1);
  Labelled many = data(several);
  settle_task(*network, many);
  EXPECT_EQ(network->info().question.task, Task::multi_label);
  Labelled numbers = data(at::randn({20, 4}));
  network = load("return z");
  settle_task(*network, numbers);
  EXPECT_EQ(network->info().question.task, Task::regression);
  // Labels of classes fit no network of one number, unless it is said how.
  Labelled classes{"data", at::ones({20}, at::kLong), {}, {}, false, {}};
  network = load("return y");
  std::string message = error_of([&] { settle_task(*network, classes); });
  EXPECT_NE(message.find("--task binary"), std::string::npos) << message;
  network = load("return y", task("regression"));
  settle_task(*network, classes);
  EXPECT_TRUE(at::equal(classes.answers, at::ones({20, 1})));
  message = error_of([&] { settle_task(*network, numbers); });
  EXPECT_NE(message.find("has 4 numbers for each input"), std::string::npos) << message;
}

TEST_F(TaskNetwork, ReferencesMakeScoresThatHaveGradients) {
  CardFlags flags = task("regression");
  flags.tolerance = "0.1";
  auto network = load("return z", flags);
  Request request;
  request.answers = true;
  at::Tensor answers = network->run(images_, request).answers;
  request = {};
  request.references = answers;
  request.input_gradient = true;
  request.objective = [](const Pass& pass) { return pass.logits.select(1, Question::kBroken); };
  Outputs outputs = network->run(images_, request);
  EXPECT_TRUE(at::equal(verdicts(outputs.logits), at::zeros({20}, at::kLong)));
  EXPECT_GT(outputs.input_gradient.abs().max().item<float>(), 0);
  // A row's own reference counts, wherever it lies in a micro-batch.
  at::Tensor shifted = answers.clone();
  shifted[17] += 1;
  request.references = shifted;
  at::Tensor broken = verdicts(network->run(images_, request).logits).nonzero().flatten();
  EXPECT_TRUE(at::equal(broken, at::tensor({17}, at::kLong))) << broken;
}

TEST(Answers, AreScoredOutputByOutput) {
  at::Tensor right = at::tensor({0.0F, 1.0F, 2.0F, 3.0F}).view({4, 1});
  Question question = regression(0.5, 1);
  AnswerScoring scored(question, right);
  scored.add(right.narrow(0, 0, 2) + 0.25, 0);
  scored.add(right.narrow(0, 2, 2) - 1, 2);
  AnswerEvaluation result = scored.result();
  EXPECT_EQ(result.within, 2);
  EXPECT_DOUBLE_EQ(result.outputs[0].mean_error, (0.25 * 2 + 1 * 2) / 4);
  EXPECT_NEAR(result.outputs[0].explained, 1 - (2 * 0.0625 + 2) / 5, 1e-6);
  Question of_labels = labels(0.5);
  at::Tensor truth = at::tensor({1.0F, 0.0F, 1.0F, 0.0F, 0.0F, 1.0F}).view({2, 3});
  AnswerScoring both(of_labels, truth);
  both.add(at::tensor({3.0F, -3.0F, -1.0F, -2.0F, 1.0F, 4.0F}).view({2, 3}), 0);
  result = both.result();
  EXPECT_EQ(result.exact, 0);
  EXPECT_EQ(result.outputs[0].found, 1);
  EXPECT_EQ(result.outputs[1].alarms, 1);
  EXPECT_NEAR(result.outputs[2].f1(), 2.0 / 3, 1e-9);
}

}  // namespace
}  // namespace galvani
