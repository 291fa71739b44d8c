// kge_auto_search_test.cpp -- the search of --auto, with functions that have a known optimum.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "train/kge/auto_search.hpp"

namespace capstan::kge {
namespace {

constexpr double kNoLimit = 1e9;
constexpr TrialSettings kFirst{.learning_rate = 0.16, .n3 = 0.1, .margin = 0};

using Objective = std::function<double(const TrialSettings&)>;

/// Runs a search whose trials take a second each.
void search_by(AutoSearch& search, const Objective& objective) {
  while (!search.done()) search.record(objective(search.next()), 1);
}

/// 1 at the optimum, and less with each factor of two from it.
Objective peak_at(double learning_rate, double n3) {
  return [=](const TrialSettings& s) {
    return 1 - 0.1 * std::abs(std::log2(s.learning_rate / learning_rate)) -
           0.1 * std::abs(std::log2(s.n3 / n3));
  };
}

TEST(KgeAutoSearch, FindsTheOptimumInEachDirection) {
  for (const double learning_rate : {0.04, 0.16, 0.64}) {
    for (const double n3 : {0.025, 0.1, 0.8}) {
      AutoSearch search(kFirst, searched_settings(ModelKind::complex), kNoLimit);
      search_by(search, peak_at(learning_rate, n3));
      EXPECT_DOUBLE_EQ(search.best().learning_rate, learning_rate);
      EXPECT_DOUBLE_EQ(search.best().n3, n3);
      EXPECT_LE(search.trials().size(), 10U);
    }
  }
}

TEST(KgeAutoSearch, TriesNoSettingsTwice) {
  AutoSearch search(kFirst, searched_settings(ModelKind::complex), kNoLimit);
  search_by(search, peak_at(0.04, 0.4));
  const auto& trials = search.trials();
  for (std::size_t i = 0; i < trials.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_FALSE(trials[i].settings == trials[j].settings) << i << " " << j;
  }
}

TEST(KgeAutoSearch, SearchesOnlyTheSettingsThatItIsGiven) {
  std::vector<SearchedSetting> searched = searched_settings(ModelKind::complex);
  std::erase_if(searched, [](const SearchedSetting& one) { return one.name == "n3"; });
  AutoSearch search(kFirst, searched, kNoLimit);
  search_by(search, peak_at(0.32, 0.025));
  EXPECT_DOUBLE_EQ(search.best().learning_rate, 0.32);
  for (const Trial& trial : search.trials()) EXPECT_EQ(trial.settings.n3, kFirst.n3);

  AutoSearch none(kFirst, {}, kNoLimit);
  search_by(none, peak_at(0.32, 0.025));
  EXPECT_EQ(none.trials().size(), 1U);
  EXPECT_EQ(none.best(), kFirst);
}

TEST(KgeAutoSearch, SettingsDependOnTheModel) {
  const auto names = [](ModelKind model) {
    std::vector<std::string> names;
    for (const SearchedSetting& one : searched_settings(model)) names.push_back(one.name);
    return names;
  };
  EXPECT_EQ(names(ModelKind::distmult), (std::vector<std::string>{"n3", "learning-rate", "negatives"}));
  EXPECT_EQ(names(ModelKind::complex), (std::vector<std::string>{"n3", "learning-rate"}));
  EXPECT_EQ(names(ModelKind::rotate), (std::vector<std::string>{"learning-rate", "margin"}));
  EXPECT_EQ(names(ModelKind::transe), (std::vector<std::string>{"learning-rate"}));
}

TEST(KgeAutoSearch, LeavesTimeForTheRestOfTheTraining) {
  // Four trials of a second, and the other two thirds of a training, end before 6.5 s.
  AutoSearch search(kFirst, searched_settings(ModelKind::complex), 6.5);
  search_by(search, peak_at(kFirst.learning_rate, 1e-3));
  EXPECT_EQ(search.trials().size(), 4U);
  EXPECT_DOUBLE_EQ(search.seconds(), 4);
  EXPECT_DOUBLE_EQ(search.best().n3, 0.0125);

  // The longest trial counts.
  AutoSearch uneven(kFirst, searched_settings(ModelKind::complex), 8.5);
  uneven.record(0.1, 2);
  EXPECT_FALSE(uneven.done());
  uneven.record(0.2, 1);
  EXPECT_TRUE(uneven.done());
}

TEST(KgeAutoSearch, SkipsValuesOutOfTheRangeOfASetting) {
  const TrialSettings first{.learning_rate = 0.16, .negatives = 1024};
  const auto objective = [](const TrialSettings& s) { return s.negatives / 65536; };
  const auto found = [&](double smallest, double largest) {
    const SearchedSetting negatives{"negatives", &TrialSettings::negatives, 4, smallest, largest};
    AutoSearch search(first, {negatives, {"learning-rate", &TrialSettings::learning_rate, 2}}, kNoLimit);
    search_by(search, objective);
    std::vector<double> values;
    for (const Trial& trial : search.trials()) values.push_back(trial.settings.negatives);
    return values;
  };
  // After the negatives, one step in each direction of the learning rate.
  EXPECT_EQ(found(1024, 16384), (std::vector<double>{1024, 4096, 16384, 16384, 16384}));
  EXPECT_EQ(found(1024, 5000), (std::vector<double>{1024, 4096, 4096, 4096}));
  EXPECT_EQ(found(100, 1024), (std::vector<double>{1024, 256, 1024, 1024})) << "only the other direction";
  EXPECT_EQ(found(1024, 1024), (std::vector<double>{1024, 1024, 1024})) << "no direction";
}

TEST(KgeAutoSearch, MoreNegativesTakeMoreTime) {
  const TrialSettings first{.negatives = 1024};
  const SearchedSetting negatives{"negatives", &TrialSettings::negatives, 4, 1024};
  // The first trial takes a second, one of 4,096 negatives would take four, a training of them 12 seconds.
  AutoSearch enough(first, {negatives}, 13.5);
  enough.record(0.1, 1);
  ASSERT_FALSE(enough.done());
  EXPECT_EQ(enough.next().negatives, 4096);
  enough.record(0.2, 4);
  EXPECT_TRUE(enough.done()) << "16,384 negatives would take another 48 seconds";
  EXPECT_EQ(enough.best().negatives, 4096);
  AutoSearch too_little(first, {negatives}, 12.5);
  too_little.record(0.1, 1);
  EXPECT_TRUE(too_little.done());
  EXPECT_EQ(too_little.best(), first);
}

TEST(KgeAutoSearch, RunsTheFirstTrialWhateverItTakes) {
  AutoSearch search(kFirst, searched_settings(ModelKind::complex), 0);
  EXPECT_FALSE(search.done());
  EXPECT_EQ(search.next(), kFirst);
  search.record(0.3, 100);
  EXPECT_TRUE(search.done());
  EXPECT_EQ(search.best(), kFirst);
}

TEST(KgeAutoSearch, KeepsTheEarlierOneOfEqualTrials) {
  AutoSearch search(kFirst, searched_settings(ModelKind::complex), kNoLimit);
  search_by(search, [](const TrialSettings&) { return 0.4; });
  EXPECT_EQ(search.best(), kFirst);
  EXPECT_EQ(search.best_trial(), 0U);
  EXPECT_EQ(search.trials().size(), 5U) << "one step in each direction of each setting";
}

TEST(KgeAutoSearch, SmallGainsAreNoise) {
  AutoSearch search(kFirst, searched_settings(ModelKind::complex), kNoLimit);
  EXPECT_TRUE(search.record(0.4, 1));
  EXPECT_FALSE(search.record(0.4015, 1));
  EXPECT_EQ(search.best(), kFirst);
  EXPECT_GT(search.next().n3, kFirst.n3) << "the other direction";
  EXPECT_TRUE(search.record(0.4025, 1));
  EXPECT_EQ(search.best_trial(), 2U);
}

TEST(KgeAutoSearch, NanIsNeverTheBest) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  AutoSearch diverges(kFirst, searched_settings(ModelKind::complex), kNoLimit);
  search_by(diverges,
            [&](const TrialSettings& s) { return s.learning_rate > 0.1 ? kNan : peak_at(0.04, 0.1)(s); });
  EXPECT_DOUBLE_EQ(diverges.best().learning_rate, 0.04);

  AutoSearch all(kFirst, searched_settings(ModelKind::complex), kNoLimit);
  search_by(all, [&](const TrialSettings&) { return kNan; });
  EXPECT_EQ(all.best(), kFirst);
  EXPECT_FALSE(all.best_trial().has_value());
}

TEST(KgeAutoSearch, ContinuesFromASavedState) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Objective objective = [&](const TrialSettings& s) {
    return s.n3 == 0.05 ? kNan : peak_at(0.32, 0.4)(s);
  };
  const auto searched = searched_settings(ModelKind::complex);
  AutoSearch complete(kFirst, searched, kNoLimit);
  search_by(complete, objective);
  AutoSearch first(kFirst, searched, kNoLimit);
  while (!first.done()) {
    AutoSearch second(kFirst, searched, kNoLimit);
    second.restore(nlohmann::json::parse(first.state().dump()));
    EXPECT_EQ(second.next(), first.next());
    EXPECT_EQ(second.trials().size(), first.trials().size());
    search_by(second, objective);
    EXPECT_EQ(second.best(), complete.best());
    EXPECT_EQ(second.trials().size(), complete.trials().size());
    first.record(objective(first.next()), 1);
  }
  AutoSearch ended(kFirst, searched, kNoLimit);
  ended.restore(first.state());
  EXPECT_TRUE(ended.done());
  EXPECT_EQ(ended.best(), complete.best());
}

TEST(KgeAutoSearch, FinishedSearchStaysFinished) {
  AutoSearch search(kFirst, searched_settings(ModelKind::complex), kNoLimit);
  search.record(0.3, 1);
  search.finish();
  AutoSearch restored(kFirst, searched_settings(ModelKind::complex), kNoLimit);
  restored.restore(search.state());
  EXPECT_TRUE(restored.done());
}

TEST(KgeAutoSearch, ReportsTrialsAndChoice) {
  AutoSearch search(kFirst, searched_settings(ModelKind::complex), 4.5);
  search_by(search, peak_at(0.16, 0.05));
  ASSERT_EQ(search.table().size(), 2U);
  EXPECT_EQ(search.table()[1].find("chosen") == std::string::npos, false);
  EXPECT_EQ(search.table()[0].find("chosen"), std::string::npos);
  const nlohmann::json json = search.to_json();
  EXPECT_DOUBLE_EQ(json.at("chosen").at("n3").get<double>(), 0.05);
  EXPECT_EQ(json.at("trials").size(), 2U);
  EXPECT_FALSE(json.at("chosen").contains("margin"));
}

}  // namespace
}  // namespace capstan::kge
