// A small subject for tests, and a way to compare stores.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <memory>
#include <string>

#include "fuzz/sqlite.h"
#include "galvani/base/error.h"
#include "galvani/base/rng.h"
#include "galvani/coverage/profile.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"

namespace galvani::testing {

// A LeNet with random weights and digits that it gets right, because its verdicts are their labels; some of them are
// given another label, so that there are wrong ones.
struct Subject {
  // `range` is that of the pixels as the network sees them.
  explicit Subject(std::int64_t images = 64, std::int64_t wrong = 4, const std::string& range = "0..1",
                   const std::string& taps = "default") {
    Rng rng(5);
    Network::Options options;
    options.execution = {16, false};
    options.flags.range = range;
    network = Network::from_onnx(architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 10}, rng),
                                 "lenet1", options);
    data = load_data("digits:test[0:" + std::to_string(images) + "]");
    // Weights drawn at random like one class best; without its mean every logit has a chance.
    data.labels = predict(*network, data.images).labels.clamp_min(0);
    for (std::int64_t i = 0; i < wrong; ++i) data.labels[i] = (data.labels[i] + 1).remainder(10);
    tracer = std::make_unique<Tracer>(*network, network->select_taps(taps), NeuronUnit::channel);
    profile = learn_profile(*tracer, Spec::parse_list("kmnc"), data, 0, 0);
  }
  CampaignSubject view() const { return {*tracer, data, profile, "the data itself", nullptr}; }

  std::unique_ptr<Network> network;
  Dataset data;
  std::unique_ptr<Tracer> tracer;
  std::shared_ptr<const Profile> profile;
};

inline CampaignSettings small_settings(const std::string& guide = "kmnc") {
  CampaignSettings settings;
  settings.guide = guide;
  settings.seeds = 20;
  settings.energy = 8;
  settings.batch = 4;
  settings.seed = 11;
  return settings;
}

// A guide by its name, so set that it needs little time: nsgen follows ways in two steps, and does not calibrate.
inline std::string quick_guide(const std::string& name) {
  return name == "nsgen" ? "nsgen:steps=2,tau=0.9" : name;
}

// Every row of every table but the clock's, as SQL literals.
inline std::string dump(const std::filesystem::path& folder) {
  Database database(folder / "campaign.db", Database::Mode::read);
  std::string text;
  Statement tables(database, "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'clock' ORDER BY name");
  while (tables.step()) {
    std::string table = tables.text(0);
    std::string columns;
    Statement names(database, "SELECT name FROM pragma_table_info('" + table + "')");
    while (names.step()) columns += (columns.empty() ? "quote(" : " || ',' || quote(") + names.text(0) + ")";
    text += table + "\n";
    Statement rows(database, "SELECT " + columns + " FROM " + table + " ORDER BY 1");
    while (rows.step()) text += rows.text(0) + "\n";
  }
  return text;
}

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace galvani::testing
