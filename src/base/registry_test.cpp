#include "galvani/base/registry.h"

#include <gtest/gtest.h>

#include "base/testing.h"

namespace galvani {
namespace {

using Numbers = Registry<std::int64_t, std::int64_t>;

Numbers::Entry entry(const std::string& name) {
  return {name,
          "gives its option plus an argument",
          {{"k", std::int64_t{1}, "what to add", 0.0, 10.0, {}}},
          [](const Options& options, std::int64_t argument) { return options.integer("k") + argument; }};
}

Numbers numbers() {
  return Numbers("number", {entry("kmnc"), entry("nbc"), entry("snac")});
}

TEST(Registry, CreatesWithDefaultsSettingsAndArguments) {
  EXPECT_EQ(numbers().create(Spec::parse("nbc"), 40), 41);
  EXPECT_EQ(numbers().create(Spec::parse("nbc:k=2"), 40), 42);
  EXPECT_EQ(numbers().options(Spec::parse("snac")).str(), "snac:k=1");
}

TEST(Registry, KeepsTheOrderOfItsTable) {
  EXPECT_EQ(numbers().names(), (std::vector<std::string>{"kmnc", "nbc", "snac"}));
  EXPECT_EQ(numbers().entries().at(1).help, "gives its option plus an argument");
}

TEST(Registry, TwoEntriesOfOneNameAreOurMistake) {
  EXPECT_EQ(message_of(ErrorCode::internal,
                       [] {
                         Numbers("number", {entry("a"), entry("b"), entry("a")});
                       }),
            "two numbers are called 'a'");
}

TEST(Registry, UnknownNamesGetASuggestionOrTheList) {
  EXPECT_EQ(message_of(ErrorCode::usage, [] { numbers().at("kmc"); }),
            "there is no number called 'kmc'; did you mean 'kmnc'?");
  EXPECT_EQ(message_of(ErrorCode::usage, [] { numbers().create(Spec::parse("whatever"), 0); }),
            "there is no number called 'whatever'; known are kmnc, nbc, snac");
  EXPECT_EQ(numbers().find("whatever"), nullptr);
  EXPECT_EQ(numbers().find("nbc")->name, "nbc");
}

TEST(Registry, BadSettingsNameTheEntry) {
  EXPECT_EQ(message_of(ErrorCode::usage, [] { numbers().create(Spec::parse("nbc:k=11"), 0); }),
            "nbc: option 'k' is 11, but must be from 0 to 10");
}

TEST(Registry, TakesMoreEntriesButNotInPlaceOfItsOwn) {
  Numbers registry = numbers();
  registry.add(entry("mine"));
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"kmnc", "nbc", "snac", "mine"}));
  EXPECT_EQ(registry.create(Spec::parse("mine:k=3"), 1), 4);
  Numbers::Entry other = entry("mine");
  other.help = "another";
  registry.add(other);
  EXPECT_EQ(registry.entries().size(), 4U);
  EXPECT_EQ(registry.at("mine").help, "another");
  EXPECT_EQ(message_of(ErrorCode::usage, [&] { registry.add(entry("nbc")); }),
            "'nbc' is the name of a number of Galvani: choose another");
}

}  // namespace
}  // namespace galvani
