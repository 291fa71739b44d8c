// sums_until_death.cpp -- closures that each count 1 in four places, while ranks are killed.
//
//   mpirun -np 7 sums_until_death CLOSURES|FILE [MICROSECONDS [endless|LEAVE]] --capstan-ps=2
//
// With a FILE that is not there, closures are scheduled until it is. Says "begins" when every worker has
// reached every ps. With a FILE all workers that are there reach every ps again and again, and "reached N" is
// said each time: what has come back before one of these lines is known to all after the next but one.
//
// Each closure takes MICROSECONDS, of which most are between two of its pushes; without them, one in 16 takes
// 300. With `endless` a last one, whose result is not among the sums, has a deadline and no end. With LEAVE,
// a file that is not there, the coordinator says "lingers" when it has printed the sums, and ends the job
// once the file is there. With VARIABLES_AFTER=FILE in the environment it says "waits" when it has a
// strategy, and creates the variables once that file is there.
//
// Prints how many closures were scheduled, and what the sums are at the end: a counter, a sharded table (one
// row of it, by turns), a table on the last ps, and a metric.
#include <unistd.h>
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
#include "until.hpp"

namespace {

namespace cs = capstan;

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kWidth = 16;
constexpr std::uint64_t kAhead = 1000;  // closures that are queued at most until the file is there
constexpr std::chrono::milliseconds kBetweenRounds(50);

/// What closures add to.
struct Sums {
  cs::Counter counter{"count"};
  cs::Variable<double> sharded{
      "sharded", cs::Shape{kRows, kWidth}, {}, {.optimizer = cs::optimizers::SGD{.learning_rate = -1}}};
  cs::Variable<std::int64_t> other{"other", cs::Shape{1}};
  cs::metrics::Sum metric{"metric"};
};

void add_one(cs::Counter counter, cs::Variable<double> sharded, cs::Variable<std::int64_t> other,
             cs::metrics::Sum metric, std::int64_t i, std::int64_t microseconds) {
  const std::vector<double> ones(kWidth, 1);
  metric.update_state(1);
  sharded.push(cs::IndexedSlices<double>{{i % kRows}, ones});
  // Long enough that most kills fall between two of the pushes, or on one.
  if (microseconds > 0) {
    cs::compute_for(std::chrono::microseconds(microseconds));
  } else if (i % 16 == 0) {
    cs::compute_for(std::chrono::microseconds(300));
  }
  other.scatter_add(std::vector<std::int64_t>{0}, std::vector<std::int64_t>{1});
  counter.add(1);
}

/// Makes the connections of a worker, and adds nothing.
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
        coordinator_.join(std::chrono::milliseconds(1));  // which throws what went wrong
      }
      if (std::chrono::steady_clock::now() < next_round) continue;
      reach();
      std::fprintf(stderr, "reached %d\n", round++);
      next_round = std::chrono::steady_clock::now() + kBetweenRounds;
    }
  }

  void schedule(std::int64_t closures) {
    for (const std::int64_t end = scheduled_ + closures; scheduled_ < end; ++scheduled_) {
      coordinator_.schedule<&add_one>(sums_.counter, sums_.sharded, sums_.other, sums_.metric, scheduled_,
                                      microseconds_);
    }
  }

  void print() const {
    const std::vector<double> table = sums_.sharded.pull();
    std::printf("scheduled %lld\n", static_cast<long long>(scheduled_));
    std::printf("counter %lld\n", static_cast<long long>(sums_.counter.value()));
    std::printf("sharded %.0f\n", std::accumulate(table.begin(), table.end(), 0.0) / kWidth);
    std::printf("other %lld\n", static_cast<long long>(sums_.other.pull()[0]));
    std::printf("metric %.0f\n", sums_.metric.result());
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
