// faults/NNNNNNNN-<true>-<predicted>.png (.wav of sounds), or -nan.png where the verdict is not a number: made and read
// back in state/new/ before the rows of a batch are stored, moved to their places after that. Nothing in faults/ is
// ever deleted, and nothing overwritten but a file that is empty.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/staging.h"
#include "galvani/data/sample.h"
#include "galvani/fuzz/records.h"

namespace galvani {

// Relative to the campaign's folder.
std::string fault_file(std::int64_t id, std::int64_t label, std::int64_t predicted, const SampleType& type);

// As it is kept in files and in the store.
std::string encode_mutant(const void* values, const SampleType& type);

class FaultFiles {
 public:
  explicit FaultFiles(const std::filesystem::path& campaign);

  // Writes a fault's file and reads it back: Error(environment) unless it now holds the values of the record.
  void stage(const FaultRecord& fault, std::string_view bytes) const;
  void place(const FaultRecord& fault) const { staging_.place(fault.file); }

  // Whether a stored fault's file has to be made again: it is gone or, after a power failure, empty.
  bool lost(const FaultRecord& fault) const;
  // Makes it again. REQUIRES that it is lost.
  void restore(const FaultRecord& fault, std::string_view bytes) const;

  // What a process that was killed has left in state/new/.
  std::vector<std::string> left() const { return staging_.left(); }
  // Moves one to its place if it is the complete file of this stored fault. False: it is not.
  bool settle(const std::string& name, const FaultRecord& fault) const;
  void discard(const std::string& name) const { staging_.discard(name); }

 private:
  std::filesystem::path campaign_;
  Staging staging_;
};

}  // namespace galvani
