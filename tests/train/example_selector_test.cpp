// example_selector_test.cpp -- the division of examples into parts and shares.
#include "train/example_selector.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace capstan::train {
namespace {

constexpr int kExamples = 10'000;

std::vector<int> selected(std::int64_t share, std::int64_t shares, Split split, std::int64_t& total) {
  ExampleSelector selector(share, shares, split);
  std::vector<int> found;
  for (int i = 0; i < kExamples; ++i) {
    if (selector.next()) found.push_back(i);
  }
  EXPECT_EQ(selector.seen(), kExamples);
  total = selector.total();
  return found;
}

TEST(ExampleSelector, EveryExampleIsInOneShareOfOnePart) {
  std::multiset<int> all;
  for (const bool valid : {false, true}) {
    std::int64_t examples = 0;
    for (std::int64_t share = 0; share < 3; ++share) {
      std::int64_t total = 0;
      const std::vector<int> found = selected(share, 3, {0.1, valid}, total);
      EXPECT_EQ(static_cast<std::int64_t>(found.size()), total / 3 + (share < total % 3 ? 1 : 0))
          << "shares are equal";
      all.insert(found.begin(), found.end());
      examples = total;
    }
    EXPECT_NEAR(static_cast<double>(examples), kExamples * (valid ? 0.1 : 0.9), 120);
  }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kExamples));
  EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), all.size());
}

TEST(ExampleSelector, PartsDoNotDependOnTheShares) {
  std::int64_t total = 0;
  const std::vector<int> one = selected(0, 1, {0.25, true}, total);
  std::set<int> of_two;
  for (std::int64_t share = 0; share < 2; ++share) {
    for (const int example : selected(share, 2, {0.25, true}, total)) of_two.insert(example);
  }
  EXPECT_EQ(std::set<int>(one.begin(), one.end()), of_two);
}

TEST(ExampleSelector, FilesOfOnePartAreNotDivided) {
  std::int64_t total = 0;
  const PartFiles divided{.train = {"a"}, .valid_fraction = 0.5}, given{.train = {"a"}, .valid = {"b"}};
  for (const Split split :
       {split_of(Part::test, divided), split_of(Part::train, given), split_of(Part::valid, given)})
    EXPECT_EQ(selected(0, 1, split, total).size(), static_cast<std::size_t>(kExamples));
}

TEST(ExampleSelector, MoreOfTheFirstExamplesValidate) {
  for (const auto& [examples, expected] :
       {std::pair{200, 40}, std::pair{1000, 104}, std::pair{10'000, 292}}) {
    ExampleSelector selector(0, 1, {0.02, true, true});
    int found = 0;
    for (int i = 0; i < examples; ++i) found += selector.next() ? 1 : 0;
    EXPECT_NEAR(found, expected, 3 * std::sqrt(expected)) << examples;
  }
}

}  // namespace
}  // namespace capstan::train
