// Attacks: small changes of an input that make a network wrong. Two kinds: within a given distance ε, and with the
// smallest change that does it.
//
// The public call checks, keeps to the ball and to the range of the values, brings what is found to the grid of the
// file format, judges it by what would be saved, and counts passes; an author writes the private `run` (search.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/base/rng.h"
#include "galvani/model/network.h"

namespace galvani {

class Search;

// How a change is measured: its largest value, its length, the number of pixels it touches.
enum class Norm { linf, l2, l0 };
const char* to_string(Norm norm);

// What an attack is given. The more rows at once, the better the network is used: rows that are done leave the batch.
struct AttackTask {
  at::Tensor inputs;         // [N, ...] uint8 images or int16 sounds
  at::Tensor labels;         // [N] int64: what is right
  at::Tensor targets;        // [N] int64: what each should become; undefined: any class but the label
  at::Tensor references;     // [N, outputs] float, of a task by reference (galvani/model/task.h); else undefined
  std::vector<Rng> streams;  // [N]: what a row draws follows from its own alone
  // Called between passes with the number of rows that are still worked on; may throw to stop. May be empty.
  std::function<void(std::int64_t standing)> progress;
};

struct Attacked {
  at::Tensor inputs;         // [N, ...] of the task's type: what would be saved; the original where nothing was found
  at::Tensor logits;         // [N, classes] float, of those
  at::Tensor predicted;      // [N] int64: verdicts on those, as predict() gives them
  at::Tensor right;          // [N] bool: the original is classified as labelled; all others are left as they are
  at::Tensor success;        // [N] bool: was right, and what would be saved is wrong, or is taken for the target
  at::Tensor success_float;  // [N] bool: the same before values were rounded
  at::Tensor forward;        // [N] int64: passes of each row
  at::Tensor backward;       // [N] int64
  at::Tensor l0;             // [N] double: share of the pixels, or moments of a sound, that differ from the original
  at::Tensor l2;             // [N] double: length of the change, full scale = 1
  at::Tensor linf;           // [N] double: largest change, full scale = 1
};

class Attack {
 public:
  virtual ~Attack() = default;

  const std::string& id() const { return id_; }      // "pgd"
  const std::string& spec() const { return spec_; }  // every option resolved

  // Finds a change within epsilon() if there is one; otherwise the smallest that it can find, whatever its size.
  bool bounded() const { return bounded_; }
  double epsilon() const { return epsilon_; }  // share of the full scale; 0 if not bounded
  Norm norm() const { return norm_; }
  virtual bool needs_gradients() const { return true; }

  // Error(bad_input) for labels or targets that the network cannot give, and for a network without gradients where they
  // are needed. The same result for any number of threads.
  Attacked operator()(Network& network, const AttackTask& task) const;

 protected:
  // Of an attack with the option "eps", or of one that looks for the smallest change.
  explicit Attack(Norm norm) : norm_(norm) {}
  Attack(Norm norm, double epsilon);

 private:
  friend std::unique_ptr<Attack> make_attack(const Spec& spec);
  // Offers to the search whatever it finds.
  virtual void run(Search& search) const = 0;

  std::string id_;
  std::string spec_;
  bool bounded_ = false;
  double epsilon_ = 0;
  Norm norm_;
};

using AttackRegistry = Registry<std::unique_ptr<Attack>>;
const AttackRegistry& attacks();
std::unique_ptr<Attack> make_attack(const Spec& spec);

// Steps of the file's grid that a change of a value may have within ε: 8/255 of a byte is eight.
std::int64_t whole_levels(double epsilon, double full);

// What a careful evaluator would say before believing an attack's figures, in sentences: gradients that are zero,
// scores that are probabilities, randomness, ε that is no whole number of grey levels, accuracy near chance. Looks at
// up to 256 of the inputs; labels [N] int64, references as in a task.
std::vector<std::string> attack_warnings(Network& network, const Attack& attack, const at::Tensor& inputs,
                                         const at::Tensor& labels, const at::Tensor& references = {});

}  // namespace galvani
