// A family of named components with an explicit table of built-ins.
//
// There is no self-registration: a static library's unreferenced objects are dropped by the linker. A family's
// builtin.cpp lists its entries; a duplicate name is an error at start-up.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/error.h"
#include "galvani/base/options.h"

namespace galvani {

template <class Product, class... Args>
class Registry {
 public:
  using Factory = std::function<Product(const Options&, Args...)>;

  struct Entry {
    std::string name;
    std::string help;
    OptionSchema schema;
    Factory make;
  };

  Registry(std::string family, std::vector<Entry> entries) : family_(std::move(family)), entries_(std::move(entries)) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (entries_[i].name == entries_[j].name)
          fail(ErrorCode::internal, "two {}s are called '{}'", family_, entries_[i].name);
      }
    }
    own_ = entries_.size();
  }

  // For a program that brings components of its own: from then on it is as one of ours. A second of that name takes the
  // place of the first; the names of ours are refused. Not while work is running.
  void add(Entry entry) {
    auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == entry.name; });
    if (it == entries_.end()) {
      entries_.push_back(std::move(entry));
    } else if (it - entries_.begin() < static_cast<std::ptrdiff_t>(own_)) {
      bad_usage("'{}' is the name of a {} of Galvani: choose another", printable(entry.name), family_);
    } else {
      *it = std::move(entry);
    }
  }

  const std::vector<Entry>& entries() const { return entries_; }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : entries_) result.push_back(entry.name);
    return result;
  }

  const Entry* find(std::string_view name) const {
    auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
    return it == entries_.end() ? nullptr : &*it;
  }

  const Entry& at(std::string_view name) const {
    if (const Entry* entry = find(name)) return *entry;
    std::string near = nearest_word(name, names());
    if (!near.empty()) bad_usage("there is no {} called '{}'; did you mean '{}'?", family_, printable(name), near);
    std::string all;
    for (const auto& entry : entries_) all += (all.empty() ? "" : ", ") + entry.name;
    bad_usage("there is no {} called '{}'; known are {}", family_, printable(name), all);
  }

  Options options(const Spec& spec) const {
    const Entry& entry = at(spec.name);
    return Options(entry.name, entry.schema, spec);
  }

  Product create(const Spec& spec, Args... args) const {
    return at(spec.name).make(options(spec), std::forward<Args>(args)...);
  }

 private:
  std::string family_;
  std::vector<Entry> entries_;
  std::size_t own_;  // those that are built in come first
};

}  // namespace galvani
