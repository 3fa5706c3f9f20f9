// Runs models for interop.py, which compares the results with PyTorch's.
//
//   interop_run jobs.json
//
// A job names a model, images (uint8 .npy), weights of the logits (float .npy, [N, classes]) and a prefix of its
// results: <out>.logits.npy and <out>.gradient.npy, the gradient of the weighted sum of the logits per pixel unit, and
// <out>.fused.npy, the logits of a pass without gradients.
// "save" writes the model there, loads that and compares bits. One line of JSON per job goes to standard output.
#include <ATen/ATen.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/log.h"
#include "galvani/base/runtime.h"
#include "galvani/data/npy.h"
#include "galvani/model/network.h"

namespace galvani {
namespace {

using nlohmann::json;

Outputs run_weighted(Network& network, const at::Tensor& images, const at::Tensor& weights) {
  Request request;
  request.input_gradient = true;
  request.objective = [&](const Pass& pass) {
    // Padding repeats the last row.
    at::Tensor rows = at::arange(pass.first, pass.first + pass.logits.size(0)).clamp_max(weights.size(0) - 1);
    return (pass.logits * weights.index_select(0, rows)).sum(1);
  };
  return network.run(images, request);
}

json run_job(const json& job) {
  Network::Options options;
  options.execution.micro_batch = job.value("micro_batch", 0);
  options.execution.fused = options.execution.micro_batch > 0;
  options.flags.layout = job.value("layout", "");
  options.data_shape = job.value("shape", std::vector<std::int64_t>());
  std::unique_ptr<Network> network = Network::load(job.at("model").get<std::string>(), options);
  at::Tensor images = read_npy(job.at("images").get<std::string>());
  at::Tensor weights = read_npy(job.at("weights").get<std::string>());
  Outputs outputs = run_weighted(*network, images, weights);
  std::string out = job.at("out");
  write_npy(out + ".logits.npy", outputs.logits);
  write_npy(out + ".gradient.npy", outputs.input_gradient);
  write_npy(out + ".fused.npy", network->run(images).logits);
  json result;
  std::int64_t neurons = 0;
  for (int tap : network->select_taps("default")) {
    const Tap& t = network->taps()[static_cast<std::size_t>(tap)];
    result["taps"].push_back(t.name);
    neurons += t.neurons();
  }
  result["neurons"] = neurons;
  result["softmax"] = network->info().head == galvani::Head::softmax;
  result["fixed_batch"] = network->info().fixed_batch;
  result["notes"] = network->info().notes;
  if (job.contains("save")) {
    std::string path = job.at("save");
    options.execution = network->execution();
    network->save(path);
    network = Network::load(path, options);
    Outputs again = run_weighted(*network, images, weights);
    result["same_bits"] =
        at::equal(outputs.logits, again.logits) && at::equal(outputs.input_gradient, again.input_gradient);
  }
  return result;
}

int run(const char* path) {
  for (const json& job : json::parse(read_file(path))) {
    json result;
    try {
      result = run_job(job);
    } catch (const std::exception& e) {
      result["error"] = e.what();
    }
    std::puts(result.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace galvani

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: interop_run jobs.json\n", stderr);
    return 2;
  }
  galvani::init_runtime();
  return galvani::run(argv[1]);
}
