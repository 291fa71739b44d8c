// sums_until_death.cpp -- closures that each count 1 in six places, while ranks are killed.
//
//   mpirun -np 7 sums_until_death CLOSURES|FILE [MICROSECONDS [endless|LEAVE]] --capstan-ps=2
//
// With FILE, closures are scheduled until FILE exists. Prints "begins" to standard error when every worker
// has reached every ps. With FILE, all current workers reach every ps repeatedly, and "reached N" is printed
// each time. If a rank returns before one of these lines, all ranks have reached it when the second line
// after that is printed.
//
// Each closure takes MICROSECONDS, mostly between two of its pushes; without MICROSECONDS, one closure
// in 16 takes 300 microseconds. With `endless`, the last closure never ends and has a deadline; its result is
// not part of the sums. With LEAVE, a file, the coordinator prints "lingers" after the sums, and ends the job
// once that file exists. With VARIABLES_AFTER=FILE in the environment, it prints "waits" after creating the
// strategy, and creates the variables once that file exists.
//
// Prints the number of closures, and the sums at the end: of a counter, of a sharded table (one row after the
// other), of a variable on the last ps, of a metric, of a dynamic table, and of a variable to which workers
// push the sums of several gradients.
#include <unistd.h>
#include <algorithm>
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "support/compute.hpp"
#include "support/poll.hpp"
#include "support/shard_memory.hpp"
#include "support/table_sums.hpp"
#include "until.hpp"

namespace {

namespace cs = capstan;

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kWidth = 16;
constexpr std::int64_t kNarrowRows = 1 << 14;
constexpr std::uint64_t kAhead = 1000;  // maximum number of queued closures until the file exists
constexpr std::chrono::milliseconds kBetweenRounds(50);

/// The variables that closures add to.
struct Sums {
  cs::Counter counter{"count"};
  cs::Variable<double> sharded{
      "sharded", cs::Shape{kRows, kWidth}, {}, {.optimizer = cs::optimizers::SGD{.learning_rate = -1}}};
  cs::Variable<std::int64_t> other{"other", cs::Shape{1}};
  cs::metrics::Sum metric{"metric"};
  cs::DynamicTable<double> table{
      "table", kWidth, {}, {.optimizer = cs::optimizers::SGD{.learning_rate = -1}, .max_keys = 1 << 16}};
  cs::Variable<double> combined{"combined",
                                cs::Shape{kRows, kWidth},
                                {},
                                {.optimizer = cs::optimizers::SGD{.learning_rate = -1},
                                 .combine_pushes = cs::CombinePushes{.rows = 16, .pushes = 3}}};
  // So many rows that no sum needs more bits than bfloat16 has.
  cs::Variable<float> narrow{
      "narrow",
      cs::Shape{kNarrowRows},
      {},
      {.optimizer = cs::optimizers::SGD{.learning_rate = -1}, .communication_dtype = cs::DType::bfloat16}};
};

void add_one(cs::Counter counter, cs::Variable<double> sharded, cs::Variable<std::int64_t> other,
             cs::metrics::Sum metric, cs::DynamicTable<double> table, cs::Variable<double> combined,
             cs::Variable<float> narrow, std::int64_t i, std::int64_t microseconds) {
  const std::vector<double> ones(kWidth, 1);
  metric.update_state(1);
  sharded.push(cs::IndexedSlices<double>{{i % kRows}, ones});
  table.push(cs::IndexedSlices<double>{{cs::key_of(i)}, ones});
  if (i % 64 == 0) {
    // Several entries of the ring, so that a second run may continue after any of them.
    std::vector<std::int64_t> rows(kNarrowRows);
    std::iota(rows.begin(), rows.end(), 0);
    for (const float value : {2.0F, -2.0F}) narrow.push(rows, std::vector<float>(kNarrowRows, value));
  }
  narrow.push({i % kNarrowRows}, {1});
  const auto push_combined = [&](double value) {
    std::vector<double> rows(2 * kWidth, value);
    std::fill(rows.begin() + kWidth, rows.end(), 1);
    combined.push(cs::IndexedSlices<double>{{i % kRows, (i + 1) % kRows}, rows});
  };
  for (const double value : {-7, 4, -3}) push_combined(value);  // the third sends the sums of two gradients
  // Long enough that most kills fall between two pushes, or during one.
  if (microseconds > 0) {
    cs::compute_for(std::chrono::microseconds(microseconds));
  } else if (i % 16 == 0) {
    cs::compute_for(std::chrono::microseconds(300));
  }
  for (const double value : {8, -6}) push_combined(value);  // with 1 for the other row, all add 1
  other.scatter_add(std::vector<std::int64_t>{0}, std::vector<std::int64_t>{1});
  counter.add(1);
}

/// Connects a worker to every ps, and adds nothing.
bool reach_all(cs::Counter counter, cs::Variable<double> sharded, cs::Variable<std::int64_t> other) {
  sharded.push(cs::IndexedSlices<double>{{0, kRows - 1}, std::vector<double>(2 * kWidth)});
  other.scatter_add(std::vector<std::int64_t>{0}, std::vector<std::int64_t>{0});
  counter.add(0);
  return true;
}

bool wait_for(const std::string& file) {
  const Until there(file);
  return cs::poll_until([&] { return there.reached(0); }, std::chrono::minutes(5));
}

void never_end() {
  while (true) pause();
}

class Job {
 public:
  Job(const Sums& sums, cs::ClusterCoordinator& coordinator, std::int64_t microseconds)
      : sums_(sums), coordinator_(coordinator), microseconds_(microseconds) {}

  void reach() { coordinator_.run_on_every_worker<&reach_all>(sums_.counter, sums_.sharded, sums_.other); }

  void schedule_until(const Until& until) {
    auto next_round = std::chrono::steady_clock::now() + kBetweenRounds;
    for (int round = 1; !until.reached(scheduled_);) {
      if (coordinator_.statistics().queued < kAhead) {
        schedule(kAhead / 10);
      } else {
        coordinator_.join(std::chrono::milliseconds(1));  // throws the first error
      }
      if (std::chrono::steady_clock::now() < next_round) continue;
      reach();
      std::fprintf(stderr, "reached %d\n", round++);
      next_round = std::chrono::steady_clock::now() + kBetweenRounds;
    }
  }

  void schedule(std::int64_t closures) {
    for (const std::int64_t end = scheduled_ + closures; scheduled_ < end; ++scheduled_) {
      coordinator_.schedule<&add_one>(sums_.counter, sums_.sharded, sums_.other, sums_.metric, sums_.table,
                                      sums_.combined, sums_.narrow, scheduled_, microseconds_);
    }
  }

  void print() const {
    const auto sum_of = [](const auto& variable) {
      const auto values = variable.pull();
      return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(variable.width());
    };
    std::printf("scheduled %lld\n", static_cast<long long>(scheduled_));
    std::printf("counter %lld\n", static_cast<long long>(sums_.counter.value()));
    std::printf("sharded %.0f\n", sum_of(sums_.sharded));
    std::printf("other %lld\n", static_cast<long long>(sums_.other.pull()[0]));
    std::printf("metric %.0f\n", sums_.metric.result());
    std::printf("table %.0f\n", cs::sum_of(sums_.table) / kWidth);
    std::printf("combined %.0f\n", sum_of(sums_.combined));
    std::printf("narrow %.0f\n", sum_of(sums_.narrow));
    std::printf("workers %d\n", coordinator_.workers());
  }

 private:
  const Sums sums_;
  cs::ClusterCoordinator& coordinator_;
  const std::int64_t microseconds_;
  std::int64_t scheduled_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const Until until(argv[1]);
  cs::ParameterServerStrategy strategy(
      cluster, {.variable_partitioner = cs::FixedShardsPartitioner{2}, .memory = cs::shard_memory()});
  const auto scope = strategy.scope();
  if (const char* file = std::getenv("VARIABLES_AFTER")) {
    std::fprintf(stderr, "waits\n");
    if (!wait_for(file)) return 1;
  }
  const Sums sums;
  cs::ClusterCoordinator coordinator(strategy);
  Job job(sums, coordinator, argc > 2 ? std::atoll(argv[2]) : 0);
  job.reach();
  std::fprintf(stderr, "begins\n");
  if (until.is_file()) {
    job.schedule_until(until);
  } else {
    job.schedule(until.count());
  }
  coordinator.join();
  job.print();
  if (argc <= 3) return 0;
  if (const std::string last = argv[3]; last != "endless") {
    std::fflush(stdout);
    std::fprintf(stderr, "lingers\n");
    return wait_for(last) ? 0 : 1;
  }
  const auto endless = coordinator.schedule_with<&never_end>({.deadline = std::chrono::milliseconds(50)});
  try {
    endless.fetch();
  } catch (const cs::Error& error) {
    std::printf("endless %s\n", std::string(cs::to_string(error.code())).c_str());
  }
  return 0;
}
