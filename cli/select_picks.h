// What galvani select says of its picks: as a table, as JSON, to people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/json.h"
#include "galvani/data/view.h"
#include "galvani/select/explain.h"
#include "galvani/select/select.h"

namespace galvani::cli {

// What a row of the result says of one pick.
struct Pick {
  std::int64_t rank;
  std::int64_t row;
  std::string file;  // "" where there is none
  double score;
  std::int64_t predicted;
  std::string name;
  double confidence;
};

class Picks {
 public:
  Picks(const Network& network, const DataView& pool, const Selection& selection)
      : network_(network), pool_(pool), selection_(selection) {}

  std::size_t size(std::size_t selector) const { return selection_.by[selector].picks[0].size(); }
  Pick at(std::size_t selector, std::size_t i) const;

 private:
  const Network& network_;
  const DataView& pool_;
  const Selection& selection_;
};

// A line of the table is what stands before the label, the label, which is for the user to fill in, and what follows
// it. `galvani repair --tests` finds the inputs by pool and file or index.
class PickTable {
 public:
  PickTable(const Network& network, const DataView& pool, std::string spec, const SelectionReasons* reasons)
      : network_(network), pool_(pool), spec_(std::move(spec)), reasons_(reasons) {}

  std::string header() const;
  std::string before(const std::string& selector, const Pick& pick) const;
  std::string after(const Pick& pick) const;
  std::vector<std::string> sentences(const Pick& pick) const;  // for people

 private:
  std::string name_of(std::int64_t verdict) const;

  const Network& network_;
  const DataView& pool_;
  std::string spec_;
  const SelectionReasons* reasons_;  // null: none were asked for
};

Json picks_json(const Picks& picks, const Selection& selection, const std::vector<std::string>& names);
Json reasons_json(const SelectionReasons& reasons);
void print_picks(const Picks& picks, const Selection& selection, const std::vector<std::string>& names,
                 const DataView& pool);
void print_reasons(const SelectionReasons& reasons, const Picks& picks, const PickTable& table);

Json copies_json(const Selection& selection, const DataView& pool);

}  // namespace galvani::cli
