// metrics_test.cpp -- metric objects compared with Keras's documented values and with plain computations.
// Tests: src/strategy/metrics_auc.cpp
#include "capstan/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "capstan/checkpoint.hpp"
#include "capstan/coordinator.hpp"
#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using ::testing::HasSubstr;
using Doubles = std::vector<double>;

/// 1, 2 or 3 ps and two workers with two replicas each, whose ranks are threads.
class Metrics : public testing::TestWithParam<int> {
 protected:
  Metrics() : scope_(strategy_.scope()) {}

  RankThreads ranks_{
      {.ranks = 3 + GetParam(),
       .flags = {{"ps", std::to_string(GetParam())}, {"replicas", "2"}, {"nan-gradients", "refuse"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}}};
  ParameterServerStrategy::Scope scope_;
  ClusterCoordinator coordinator_{strategy_};
};

/// The formulas of tf.keras.metrics.AUC.
struct PlainAuc {
  Doubles tp, fp, tn, fn;

  PlainAuc(const Doubles& labels, const Doubles& predictions, const Doubles& thresholds) {
    for (const double threshold : thresholds) {
      double counts[2][2] = {};
      for (std::size_t i = 0; i < labels.size(); ++i) counts[predictions[i] > threshold][labels[i] != 0] += 1;
      tp.push_back(counts[1][1]);
      fp.push_back(counts[1][0]);
      tn.push_back(counts[0][0]);
      fn.push_back(counts[0][1]);
    }
  }
  double roc() const {
    double area = 0;
    const auto x = [&](std::size_t i) { return fp[i] / (fp[i] + tn[i]); };
    const auto y = [&](std::size_t i) { return tp[i] / (tp[i] + fn[i]); };
    for (std::size_t i = 0; i + 1 < tp.size(); ++i) area += (x(i) - x(i + 1)) * ((y(i) + y(i + 1)) / 2);
    return area;
  }
  double pr() const {
    double area = 0;
    for (std::size_t i = 0; i + 1 < tp.size(); ++i) {
      const double p = tp[i] + fp[i], next_p = tp[i + 1] + fp[i + 1];
      const double slope = p > next_p ? (tp[i] - tp[i + 1]) / (p - next_p) : 0;
      const double intercept = tp[i + 1] - slope * next_p;
      const double log_ratio = p > 0 && next_p > 0 ? std::log(p / next_p) : 0;
      area += slope * (tp[i] - tp[i + 1] + intercept * log_ratio) / (tp[i + 1] + fn[i + 1]);
    }
    return area;
  }
};

// S75: same.
TEST_P(Metrics, EqualTheValuesInKerasDocumentation) {
  const metrics::Mean mean("mean");
  EXPECT_EQ(mean.result(), 0);
  mean.update_state({1, 3, 5, 7});
  EXPECT_EQ(mean.result(), 4);
  mean.reset_state();
  EXPECT_EQ(mean.result(), 0);
  mean.update_state({1, 3, 5, 7}, {1, 1, 0, 0});
  EXPECT_EQ(mean.result(), 2);

  const metrics::Sum sum("sum");
  sum.update_state(std::vector<std::int32_t>{1, 3, 5, 7});
  EXPECT_EQ(sum.result(), 16);
  sum.reset_state();
  sum.update_state(std::vector<float>{1, 3, 5, 7}, std::vector<bool>{true, true, false, false});
  EXPECT_EQ(sum.result(), 4);

  const metrics::Accuracy accuracy("accuracy");
  accuracy.update_state(Array<std::int64_t>({4, 1}, {1, 2, 3, 4}), Array<std::int64_t>({4, 1}, {0, 2, 3, 4}));
  EXPECT_EQ(accuracy.result(), 0.75);
  accuracy.reset_state();
  accuracy.update_state({1, 2, 3, 4}, Array<std::int64_t>({4, 1}, {0, 2, 3, 4}), {1, 1, 0, 0});
  EXPECT_EQ(accuracy.result(), 0.5);

  const metrics::MeanSquaredError error("error");
  const Array<float> labels({2, 2}, {0, 1, 0, 0}), predictions({2, 2}, {1, 1, 0, 0});
  error.update_state(labels, predictions);
  EXPECT_EQ(error.result(), 0.25);
  error.reset_state();
  error.update_state(labels, predictions, {1, 0});
  EXPECT_EQ(error.result(), 0.5);

  const metrics::AUC auc("auc", {.num_thresholds = 3});
  auc.update_state({0, 0, 1, 1}, {0, 0.5, 0.3, 0.9});
  EXPECT_EQ(auc.result(), 0.75);
  const metrics::ConfusionCounts counts = auc.confusion_counts();
  EXPECT_EQ(counts.true_positives, (Doubles{2, 1, 0}));
  EXPECT_EQ(counts.false_positives, (Doubles{2, 0, 0}));
  EXPECT_EQ(counts.false_negatives, (Doubles{0, 1, 2}));
  EXPECT_EQ(counts.true_negatives, (Doubles{0, 2, 2}));
  auc.reset_state();
  auc.update_state({0, 0, 1, 1}, {0, 0.5, 0.3, 0.9}, {1, 0, 0, 1});
  EXPECT_EQ(auc.result(), 1);
}

void update_auc(const Doubles& labels, const Doubles& predictions, metrics::AUC roc, metrics::AUC pr) {
  roc.update_state(labels, predictions);
  pr.update_state(labels, predictions);
}

// S75: better: an update counts exactly once, even if its function runs again after its worker has died.
TEST_P(Metrics, AucOfAllWorkersEqualsOneProcess) {
  const metrics::AUC roc("roc"), pr("pr", {.curve = metrics::Curve::pr});
  ASSERT_EQ(roc.thresholds().size(), 200U);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  Doubles labels, predictions;
  for (int batch = 0; batch < 40; ++batch) {
    Doubles some_labels, some_predictions;
    for (int i = 0; i < 100; ++i) {
      some_predictions.push_back(i == 0 ? 0 : i == 1 ? 1 : i == 2 ? 100.0 / 199 : uniform(random));
      some_labels.push_back(uniform(random) < some_predictions.back() ? 1 : 0);
    }
    labels.insert(labels.end(), some_labels.begin(), some_labels.end());
    predictions.insert(predictions.end(), some_predictions.begin(), some_predictions.end());
    coordinator_.schedule<&update_auc>(some_labels, some_predictions, roc, pr);
  }
  coordinator_.join();
  const PlainAuc plain(labels, predictions, roc.thresholds());
  const metrics::ConfusionCounts counts = roc.confusion_counts();
  EXPECT_EQ(counts.true_positives, plain.tp);
  EXPECT_EQ(counts.false_positives, plain.fp);
  EXPECT_EQ(counts.true_negatives, plain.tn);
  EXPECT_EQ(counts.false_negatives, plain.fn);
  EXPECT_DOUBLE_EQ(roc.result(), plain.roc());
  EXPECT_DOUBLE_EQ(pr.result(), plain.pr());
}

// S75: same.
TEST_P(Metrics, AucSumsLowerOrUpperEndsAtGivenThresholds) {
  using metrics::Curve;
  using metrics::SummationMethod;
  const Doubles labels{0, 1, 0, 1, 1}, predictions{0.1, 0.4, 0.6, 0.7, 0.9};
  // At the thresholds below 0, 0.5, 0.8 and above 1: tp 3, 2, 1, 0 and fp 2, 1, 0, 0.
  const auto area = [&](Curve curve, SummationMethod method) {
    const std::string name =
        "auc" + std::to_string(static_cast<int>(curve)) + std::to_string(static_cast<int>(method));
    const metrics::AUC auc(name, {.curve = curve, .summation_method = method, .thresholds = {0.8, 0.5}});
    auc.update_state(labels, predictions);
    return auc.result();
  };
  EXPECT_DOUBLE_EQ(area(Curve::roc, SummationMethod::minoring), (2 / 3.0 + 1 / 3.0) / 2);
  EXPECT_DOUBLE_EQ(area(Curve::roc, SummationMethod::majoring), (1 + 2 / 3.0) / 2);
  // Precisions 3/5, 2/3, 1, 0.
  EXPECT_DOUBLE_EQ(area(Curve::pr, SummationMethod::minoring), (3 / 5.0 + 2 / 3.0) / 3);
  EXPECT_DOUBLE_EQ(area(Curve::pr, SummationMethod::majoring), (2 / 3.0 + 1 + 1) / 3);
}

void count_correct(std::int64_t shard, metrics::Accuracy accuracy) {
  for (int batch = 0; batch < 4; ++batch) {
    Doubles predictions(16, 0);
    for (std::int64_t i = 0; i < 16 && batch * 16 + i < shard; ++i)
      predictions[static_cast<std::size_t>(i)] = 1;
    accuracy.update_state(Doubles(16, 1), predictions);
  }
}

// B275: same.
TEST_P(Metrics, EvaluationOverShardsIsExact) {
  const metrics::Accuracy accuracy("accuracy");
  for (std::int64_t shard = 0; shard < 32; ++shard) coordinator_.schedule<&count_correct>(shard, accuracy);
  coordinator_.join();
  EXPECT_EQ(accuracy.result(), 0.2421875);
}

void update_on_each_replica(metrics::Mean mean) {
  get_replicas().run([&](ReplicaContext& replica) {
    mean.update_state(replica.replica_id_in_sync_group());
    if (replica.replica_id_in_sync_group() == 0) mean.update_state(5);  // replicas need not be synchronized
  });
}

// S75: better: each replica updates without waiting for the others.
TEST_P(Metrics, UpdatesOfEachReplicaCount) {
  const metrics::Mean mean("mean");
  for (int i = 0; i < 10; ++i) coordinator_.schedule<&update_on_each_replica>(mean);
  coordinator_.join();
  EXPECT_EQ(mean.result(), (0 + 1 + 5) / 3.0);
}

// S75: better: a metric is saved and restored like a variable of its name, with any number of ps.
TEST_P(Metrics, AreSavedInCheckpoints) {
  const io::TemporaryDirectory directory;
  CheckpointManager manager(strategy_, {.directory = directory.path()});
  const metrics::Mean mean("loss");
  const metrics::AUC auc("auc", {.num_thresholds = 3});
  mean.update_state({1, 2});
  auc.update_state({0, 0, 1, 1}, {0, 0.5, 0.3, 0.9});
  manager.save(1);
  mean.update_state(30);
  auc.reset_state();
  EXPECT_EQ(manager.restore_latest(), 1);
  EXPECT_EQ(mean.result(), 1.5);
  EXPECT_EQ(auc.result(), 0.75);
  EXPECT_THAT(strategy_.variables(), testing::ElementsAre("loss", "auc"));
  EXPECT_THAT(strategy_.variables(/*trainable_only=*/true), testing::IsEmpty());
}

// S75: better: values that do not fit are rejected by the metric's name, before anything is added.
TEST_P(Metrics, RejectValuesThatDoNotFit) {
  const metrics::Mean mean("loss");
  const metrics::Accuracy accuracy("accuracy");
  const metrics::AUC auc("auc");
  const auto refused = [](const char* name, const auto& call) {
    EXPECT_THAT(error_of(Code::invalid_argument, call), HasSubstr(name));
  };
  refused("loss", [&] { mean.update_state({1, 2, 3}, {1, 2}); });
  refused("loss", [&] { mean.update_state(std::numeric_limits<double>::quiet_NaN()); });
  refused("accuracy", [&] { accuracy.update_state({1, 2, 3}, {1, 2}); });
  refused("accuracy", [&] { accuracy.update_state(Array<double>(Shape{2, 2}), Array<double>(Shape{4})); });
  refused("auc", [&] { auc.update_state({1, 0}, {0.5, 1.5}); });
  refused("auc", [&] { auc.update_state({1, 0}, {0.5}); });
  refused("bad", [] { metrics::AUC("bad", {.num_thresholds = 1}); });
  refused("bad", [] { metrics::AUC("bad", {.thresholds = {0.5, 2}}); });
  EXPECT_EQ(mean.result(), 0);
  EXPECT_EQ(accuracy.result(), 0);
  EXPECT_EQ(auc.confusion_counts().true_positives, Doubles(200));
}

// S75: same.
TEST(MetricsOutsideOfScopes, StayInTheProcess) {
  const metrics::Mean mean("mean outside of scopes");
  mean.update_state(Array<float>({2, 2}, {1, 2, 3, 4}), {3, 1});  // the means 1.5 and 3.5 of two samples
  EXPECT_EQ(mean.result(), 2);
}

INSTANTIATE_TEST_SUITE_P(OfPs, Metrics, testing::Values(1, 2, 3));

}  // namespace
}  // namespace capstan
