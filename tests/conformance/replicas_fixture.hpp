// replicas_fixture.hpp -- 1, 2 or 4 replicas on each of two workers, and 1, 2 or 3 ps, whose ranks are
// threads.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "capstan/capstan.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {

using Floats = std::vector<float>;
using Ids = std::vector<std::int64_t>;

struct Size {
  int replicas;
  int ps;
};
inline void PrintTo(const Size& size, std::ostream* out) {
  *out << size.replicas << " replicas, " << size.ps << " ps";
}

/// Returns an array of this shape with the elements 0, 1, 2, ...
inline Array<double> counted(const Shape& shape) {
  Array<double> array(shape);
  std::iota(array.values.begin(), array.values.end(), 0.0);
  return array;
}

class ReplicasConformance : public testing::TestWithParam<Size> {
 protected:
  static constexpr int kWorkers = 2;

  ReplicasConformance() { strategy_.allow_run_without_coordinator(); }
  template <class T>
  PerReplica<T> everywhere(const T& value) const {
    return {std::vector<T>(static_cast<std::size_t>(n_), value)};
  }

  const int n_ = GetParam().replicas;
  RankThreads ranks_{{.ranks = 1 + kWorkers + GetParam().ps,
                      .flags = {{"ps", std::to_string(GetParam().ps)}, {"replicas", std::to_string(n_)}}}};
  ParameterServerStrategy strategy_{ranks_.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}}};
  ClusterCoordinator coordinator_{strategy_};
};

inline Variable<double> summing(const std::string& name, const Shape& shape, double start) {
  return {name, shape, initializers::constant(start), {optimizers::SGD{.learning_rate = -1}}};
}
inline void add(const Variable<double>& variable, double amount) {
  variable.push(std::vector<std::int64_t>{0}, std::vector<double>{amount});
}

inline std::tuple<double, double> plus_and_minus(double input, const Variable<double>& v) {
  return {input + v.pull()[0], input - v.pull()[0]};
}

inline std::tuple<double, double> run_and_reduce(double input, const Variable<double>& v) {
  const auto replicas = get_replicas();
  return replicas.reduce(ReduceOp::SUM, replicas.run(plus_and_minus, input, v));
}

const auto kSizes = testing::Values(Size{1, 1}, Size{2, 2}, Size{4, 3});

}  // namespace capstan
