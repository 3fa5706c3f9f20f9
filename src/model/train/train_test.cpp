#include "galvani/model/train.h"

#include <gtest/gtest.h>
#include <torch/script.h>

#include <csignal>

#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"
#include "model/graph_tools.h"
#include "model/network_impl.h"
#include "model/testing.h"
#include "model/train/checkpoint.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::scripted;
using testing::zoo_network;

Dataset colourful(std::int64_t n, std::int64_t side) {
  // Class c is a noisy image that is bright in a channel and half of its own: easy to learn.
  Dataset data;
  data.name = "colourful";
  data.images = at::empty({n, 3, side, side}, at::kByte);
  data.labels = at::empty({n}, at::kLong);
  for (std::int64_t i = 0; i < n; ++i) {
    Rng rng = Rng(9).derive(static_cast<std::uint64_t>(i));
    std::int64_t label = i % 6;
    auto image = data.images[i];
    auto* p = image.data_ptr<std::uint8_t>();
    for (std::int64_t k = 0; k < image.numel(); ++k) p[k] = static_cast<std::uint8_t>(rng.below(128));
    image[label % 3].slice(0, label < 3 ? 0 : side / 2, label < 3 ? side / 2 : side).add_(100);
    data.labels[i] = label;
  }
  data.class_names = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  return data;
}

std::vector<at::Tensor> weights_of(Network& network) {
  std::vector<at::Tensor> result;
  for (const std::string& name : network.impl().trainable)
    result.push_back(attribute_at(network.impl().module, name).clone());
  for (const auto& buffer : network.impl().module.named_buffers(true)) result.push_back(buffer.value.clone());
  return result;
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = at::equal(a[i], b[i]);
  return same;
}

TrainOptions quick(std::int64_t epochs) {
  TrainOptions options;
  options.epochs = epochs;
  options.batch = 48;
  options.micro_batch = 16;
  options.optimizer = "sgd:lr=0.05";
  options.augment = "crop:pad=2,flip";
  return options;
}

// Batch norm, dropout, shortcuts: everything that could depend on threads.
const char* const kArchitecture = "resnet20:width=4";

TEST(Train, LearnsAndTheExecutorSeesIt) {
  auto network = zoo_network(kArchitecture);
  Dataset data = colourful(480, 32);
  double before = evaluate(*network, data).accuracy;
  TrainResult result = train(*network, data, data, quick(4), [](const EpochReport&) {});
  ASSERT_EQ(result.epochs.size(), 4U);
  EXPECT_LT(result.epochs.back().loss, result.epochs.front().loss);
  double after = evaluate(*network, data).accuracy;
  EXPECT_GT(after, before + 0.3);
  EXPECT_EQ(after, result.epochs.back().accuracy);
}

TEST(Train, SameWeightsForAnyNumberOfWorkers) {
  Dataset data = colourful(200, 32);
  for (const char* architecture : {kArchitecture, "sadl2:bn=true,dropout=0.5"}) {
    std::vector<at::Tensor> reference;
    for (int n : {1, 2, 4}) {
      set_workers(n);
      auto network = zoo_network(architecture);
      train(*network, data, data, quick(1), [](const EpochReport&) {});
      if (reference.empty()) {
        reference = weights_of(*network);
      } else {
        EXPECT_TRUE(same_bits(reference, weights_of(*network))) << architecture << " " << n;
      }
    }
  }
}

TEST(Train, InterruptedAndResumedEqualsUndisturbed) {
  Dataset data = colourful(300, 32);
  auto whole = zoo_network(kArchitecture);
  train(*whole, data, data, quick(3), [](const EpochReport&) {});

  TemporaryFolder folder;
  TrainOptions options = quick(3);
  options.checkpoint = folder / "checkpoint";
  {
    auto network = zoo_network(kArchitecture);
    install_interrupt_handler();
    EXPECT_THROW(train(*network, data, data, options,
                       [](const EpochReport& r) {
                         if (r.epoch == 1) std::raise(SIGINT);
                       }),
                 Error);
    clear_interrupt();
    ASSERT_TRUE(std::filesystem::exists(options.checkpoint));
  }
  TrainOptions other = options;
  other.batch = 32;
  auto refused = zoo_network(kArchitecture);
  EXPECT_NE(error_of([&] {
              train(*refused, data, data, other, [](const EpochReport&) {});
            }).find("batch = 48 there, batch = 32 now"),
            std::string::npos);
  auto network = zoo_network(kArchitecture);
  TrainResult result = train(*network, data, data, options, [](const EpochReport&) {});
  EXPECT_TRUE(result.resumed);
  EXPECT_EQ(result.epochs.size(), 3U);
  EXPECT_TRUE(same_bits(weights_of(*whole), weights_of(*network)));
  // Until the caller has saved the model the checkpoint is all there is: it gives the same weights once more.
  auto once_more = zoo_network(kArchitecture);
  train(*once_more, data, data, options, [](const EpochReport&) {});
  EXPECT_TRUE(same_bits(weights_of(*whole), weights_of(*once_more)));
}

TEST(Train, SavedAfterTrainingGivesTheSameBits) {
  at::manual_seed(1);
  Dataset data = colourful(96, 8);
  auto script = scripted(R"(
    def forward(self, x):
        y = torch.relu(torch.conv2d(x, self.conv_weight, self.conv_bias, [1, 1], [1, 1]))
        y = torch.dropout(y, 0.2, self.training)
        return torch.linear(torch.mean(y, [2, 3]), self.fc_weight, self.fc_bias)
  )",
                         {{"conv_weight", at::randn({8, 3, 3, 3}) * 0.2},
                          {"conv_bias", at::zeros({8})},
                          {"fc_weight", at::randn({6, 8}) * 0.2},
                          {"fc_bias", at::zeros({6})}});
  data.class_names.resize(6);
  TemporaryFolder folder;
  TrainOptions options = quick(6);
  options.optimizer = "adam:lr=0.02";
  TrainResult result = train(*script, data, data, options, [](const EpochReport&) {});
  EXPECT_LT(result.epochs.back().loss, result.epochs.front().loss);
  script->save(folder / "trained.pt");
  Network::Options same;
  same.execution = script->execution();
  auto again = Network::load(folder / "trained.pt", same);
  EXPECT_TRUE(at::equal(script->run(data.images).logits, again->run(data.images).logits));

  auto onnx = zoo_network(kArchitecture);
  Dataset large = colourful(96, 32);
  train(*onnx, large, large, quick(1), [](const EpochReport&) {});
  onnx->save(folder / "trained.onnx");
  same.execution = onnx->execution();
  auto reloaded = Network::load(folder / "trained.onnx", same);
  EXPECT_TRUE(at::equal(onnx->run(large.images).logits, reloaded->run(large.images).logits));
  EXPECT_TRUE(same_bits(weights_of(*onnx), weights_of(*reloaded)));
}

TEST(Train, EarlyStopKeepsTheBestEpoch) {
  Dataset data = colourful(120, 32);
  auto network = zoo_network(kArchitecture);
  TrainOptions options = quick(12);
  options.optimizer = "sgd:lr=0.2";
  options.schedule = "constant";
  options.early_stop = 2;
  TrainResult result = train(*network, data, data, options, [](const EpochReport&) {});
  double best = 0;
  for (const EpochReport& r : result.epochs) best = std::max(best, r.accuracy);
  EXPECT_EQ(evaluate(*network, data).accuracy, best);
}

TEST(Train, StopsAtTheAccuracyAskedFor) {
  Dataset data = colourful(480, 32);
  auto network = zoo_network(kArchitecture);
  TrainOptions options = quick(20);
  options.stop_at = 0.5;
  TrainResult result = train(*network, data, data, options, [](const EpochReport&) {});
  EXPECT_FALSE(result.stopped.empty());
  EXPECT_GE(result.epochs.back().accuracy, 0.5);
  EXPECT_LT(result.epochs.size(), 20U);
}

TEST(Train, DivergenceIsAnErrorNotNan) {
  Dataset data = colourful(96, 32);
  auto network = zoo_network("resnet20:width=4");
  TrainOptions options = quick(20);
  options.optimizer = "sgd:lr=100,weight_decay=1";  // weights grow a hundredfold a step
  std::string message = error_of([&] { train(*network, data, data, options, [](const EpochReport&) {}); });
  EXPECT_NE(message.find("diverged"), std::string::npos) << message;
}

// PyTorch's documentation of SGD, by hand: v = 0.9·0 + (g + 0.1·w), w -= 0.5·(d + 0.9·v).
TEST(Optimizer, SgdWithNesterovByHand) {
  auto sgd = optimizers().create(Spec::parse("sgd:lr=0.5,momentum=0.9,weight_decay=0.1,nesterov=true"));
  at::Tensor w = at::full({1, 1}, 2.0F);
  sgd->prepare({w});
  sgd->update(0, w, at::full({1, 1}, 1.0F), 0.5, 1);
  double d = 1.0 + 0.1 * 2.0;
  EXPECT_NEAR(w.item<double>(), 2.0 - 0.5 * (d + 0.9 * d), 1e-6);
}

TEST(Optimizer, FirstAdamStepIsTheRate) {
  auto adam = optimizers().create(Spec::parse("adam:lr=0.01"));
  at::Tensor w = at::zeros({2});
  adam->prepare({w});
  adam->update(0, w, at::tensor({3.0F, -0.2F}), 0.01, 1);
  EXPECT_NEAR(w[0].item<double>(), -0.01, 1e-6);
  EXPECT_NEAR(w[1].item<double>(), 0.01, 1e-6);
}

TEST(Schedule, KnownPoints) {
  auto at_epoch = [](const char* spec, double epoch, double epochs) {
    return schedules().create(Spec::parse(spec))(epoch, epochs);
  };
  EXPECT_DOUBLE_EQ(at_epoch("constant", 7, 10), 1);
  EXPECT_NEAR(at_epoch("cosine:warmup=0", 5, 10), 0.5, 1e-12);
  EXPECT_NEAR(at_epoch("step:every=3,factor=0.5", 7, 10), 0.25, 1e-12);
  EXPECT_NEAR(at_epoch("milestones:at=20/30,factor=0.1", 25, 40), 0.1, 1e-12);
  EXPECT_NEAR(at_epoch("milestones:at=20/30,factor=0.1", 30, 40), 0.01, 1e-12);
  EXPECT_NEAR(at_epoch("onecycle:rise=0.3", 3, 10), 1, 1e-12);
}

TEST(Damage, LabelNoiseChangesTheShareAskedFor) {
  Dataset data = colourful(300, 8);
  Dataset noisy = data;
  add_label_noise(noisy, 0.2, Rng(4));
  EXPECT_EQ((noisy.labels != data.labels).sum().item<std::int64_t>(), 60);
}

TEST(Damage, PollutionStampsOnePatchAndRelabels) {
  Dataset data = colourful(100, 16);
  Dataset dirty = data;
  pollute(dirty, 0.3, 2, {4, 4}, Rng(4));
  at::Tensor changed = (dirty.images != data.images).flatten(1).any(1);
  EXPECT_EQ(changed.sum().item<std::int64_t>(), 30);
  EXPECT_TRUE(dirty.labels.masked_select(changed).eq(2).all().item<bool>());
  EXPECT_LE((dirty.images != data.images).flatten(1).sum(1).max().item<std::int64_t>(), 4 * 4 * 3);
}

TEST(Damage, PatchesMayDifferInSize) {
  Dataset data = colourful(200, 16);
  data.images.fill_(128);
  Dataset dirty = data;
  pollute(dirty, 0.5, 1, parse_patch_sides("1..6"), Rng(4));
  at::Tensor changed = (dirty.images != data.images).any(1);  // [N, H, W]
  at::Tensor widths = changed.any(1).sum(1);
  EXPECT_EQ(widths.max().item<std::int64_t>(), 6);
  EXPECT_EQ(widths.masked_select(widths.gt(0)).min().item<std::int64_t>(), 1);
  EXPECT_EQ(dirty.labels.eq(1).sum().item<std::int64_t>() > 100, true);
  EXPECT_EQ(parse_patch_sides("5").low, 5);
  for (const char* wrong : {"", "6..1", "0", "a", "1..", "..3"})
    EXPECT_NE(error_of([&] { parse_patch_sides(wrong); }), "") << wrong;
}

TEST(Checkpoint, DamageIsNoticed) {
  TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.settings = "a = 1\n";
  checkpoint.tensors = {at::randn({3})};
  checkpoint.state.updates = {7, 9};
  checkpoint.state.numbers = {1, 0.1, 0.5, 0.6, 0.7, 2.0};
  checkpoint.state.kept = {at::randn({2})};
  save_checkpoint(folder / "c", checkpoint);
  Checkpoint again = load_checkpoint(folder / "c");
  EXPECT_TRUE(at::equal(again.tensors.at(0), checkpoint.tensors[0]));
  EXPECT_EQ(again.state.updates, checkpoint.state.updates);
  EXPECT_EQ(again.state.numbers, checkpoint.state.numbers);
  EXPECT_TRUE(at::equal(again.state.kept.at(0), checkpoint.state.kept[0]));
  std::string bytes = read_file(folder / "c");
  bytes[bytes.size() / 2] ^= 1;
  write_file(folder / "c", bytes);
  EXPECT_NE(error_of([&] { load_checkpoint(folder / "c"); }).find("damaged"), std::string::npos);
}

TEST(Normalisation, IsTheDatasMeanAndDeviation) {
  Dataset data;
  data.images = at::zeros({2, 1, 1, 2}, at::kByte);
  data.images[0].fill_(255);
  Preprocess p = normalisation(data);
  EXPECT_NEAR(p.mean[0], 0.5, 1e-9);
  EXPECT_NEAR(p.deviation[0], 0.5, 1e-9);
}

}  // namespace
}  // namespace galvani
