// What is right of the inputs of a campaign or an attack: labels, or of a task by reference (galvani/model/task.h)
// answers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "galvani/data/dataset.h"
#include "galvani/fuzz/reader.h"
#include "galvani/model/network.h"

namespace galvani {

// Makes data what a campaign or an attack takes. `own`: what is right is what the network itself says of the original.
// Of a task by reference every input gets its reference in data.answers (the network's own where data do not say) and
// the label Question::kHolds, and a tolerance that nobody gave becomes a tenth of what references spread over, which is
// logged. Returns whether the network's own answers count.
bool settle_labels(Network& network, Dataset& data, bool own);

// A reference as a record keeps it: "0.25,-1".
std::string reference_text(const at::Tensor& row);
// Those of seeds, [seeds, outputs] float; undefined: the task has none. Error(bad_input, naming `where`) for texts of
// another form.
at::Tensor references_of(const std::vector<SeedRecord>& seeds, const Network& network, const std::string& where);

// What answers to the inputs of a stored campaign are held against, by the seeds they come from.
class SeedReferences {
 public:
  // Error(bad_input) if the network is asked another thing than the campaign's was.
  SeedReferences(const CampaignReader& reader, const Network& network);
  // [seeds.size(), outputs]; undefined: the task has none.
  at::Tensor of(const std::vector<std::int64_t>& seeds) const;

 private:
  at::Tensor rows_;
  std::unordered_map<std::int64_t, std::int64_t> row_of_;
};

}  // namespace galvani
