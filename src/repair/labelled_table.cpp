#include "repair/labelled_table.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"

namespace galvani {
namespace {

constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 30;

struct TableLine {
  std::size_t number;  // in the file, from 1
  std::string file;
  std::string index;
  std::string label;
};

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Lines with a label, by the pool they are from.
std::map<std::string, std::vector<TableLine>> labelled_lines(const std::string& path) {
  std::string text = read_file(path, kMostTableBytes);
  std::map<std::string, std::size_t> columns;
  std::map<std::string, std::vector<TableLine>> result;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::vector<std::string> cells = split_csv_line(std::string_view(text).substr(at, end - at));
    at = end + 1;
    number += 1;
    if (number == 1) {
      for (std::size_t i = 0; i < cells.size(); ++i) columns[trimmed(cells[i])] = i;
      for (const char* needed : {"label", "pool", "index"}) {
        if (columns.count(needed) == 0)
          bad_input("{}: has no column '{}'; a table to repair with is one that `galvani select -o` wrote", path,
                    needed);
      }
      continue;
    }
    auto cell = [&](const char* name) {
      auto column = columns.find(name);
      return column == columns.end() || column->second >= cells.size() ? "" : trimmed(cells[column->second]);
    };
    if (!cell("label").empty()) result[cell("pool")].push_back({number, cell("file"), cell("index"), cell("label")});
  }
  if (result.empty()) bad_input("{}: no label is filled in, so there is nothing to repair with", path);
  return result;
}

// A class by its name or number.
std::int64_t label_of(const Network& network, const Labelled& pool, const std::string& path, const TableLine& line) {
  std::int64_t classes = network.info().classes;
  for (std::int64_t c = 0; c < classes; ++c) {
    if (verdict_name(network, pool, c) == line.label) return c;
  }
  std::optional<std::int64_t> number = whole_number(line.label);
  if (!number || *number < 0 || *number >= classes)
    bad_input("{}: line {} has the label '{}', but {} has no such class", path, line.number, printable(line.label),
              network.info().path);
  return *number;
}

}  // namespace

bool is_labelled_table(const std::string& where) {
  std::error_code error;
  return std::filesystem::path(where).extension() == ".csv" && std::filesystem::is_regular_file(where, error);
}

Dataset read_labelled_table(const Network& network, const std::string& path) {
  Dataset all;
  std::vector<at::Tensor> images, labels;
  for (const auto& [spec, lines] : labelled_lines(path)) {
    InputNeeds needs = input_needs(network);
    // Only these files are read; others may be broken, and the folders' names are no labels.
    needs.intake.skip_broken = true;
    needs.classes = 0;
    DataView pool = OpenedData(spec).view(needs);
    check_fits(network, pool.type().shape, pool.name);
    std::unordered_map<std::string, std::int64_t> by_file;
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(pool.files.size()); ++row)
      by_file.emplace(pool.file(row), row);
    std::map<std::int64_t, std::int64_t> label_of_row;
    for (const TableLine& line : lines) {
      std::int64_t row = -1;
      if (line.file.empty()) {
        row = whole_number(line.index).value_or(-1);
      } else if (auto found = by_file.find(line.file); found != by_file.end()) {
        row = found->second;
      }
      if (row < 0 || row >= pool.size())
        bad_input("{}: line {} names {}, which {} does not have", path, line.number,
                  line.file.empty() ? "input " + printable(line.index) : printable(line.file), spec);
      std::int64_t label = label_of(network, pool, path, line);
      if (label_of_row.try_emplace(row, label).first->second != label)
        bad_input("{}: line {} gives an input another label than a line before it", path, line.number);
    }
    std::vector<std::int64_t> rows, values;
    for (const auto& [row, label] : label_of_row) {
      rows.push_back(row);
      values.push_back(label);
      all.files.push_back(pool.file(row));
    }
    all.rate = pool.type().rate;
    images.push_back(pool.fetch(rows));
    labels.push_back(at::tensor(values, at::kLong));
  }
  all.images = at::cat(images);
  all.labels = at::cat(labels);
  all.name = path;
  return all;
}

}  // namespace galvani
