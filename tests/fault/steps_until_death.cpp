// steps_until_death.cpp -- runs steps of closures while a test kills the coordinator. Each closure adds 1 to
// a counter, and to one row of each of two variables and a dynamic table.
//
//   mpirun -np 6 steps_until_death STEPS|FILE CLOSURES MICROSECONDS [CHECKPOINTS [linger]] --capstan-ps=2
//       --capstan-coordinator-wait=20s
//
// A step has CLOSURES closures of about MICROSECONDS each; it is recorded when all have ended, and "recorded
// N" is printed to standard error. With FILE, steps run until FILE exists, and their number is a multiple of
// four. Each coordinator prints "begins after step N" to standard error once every worker has reached every
// ps. With CHECKPOINTS, every fourth step is saved to that directory, and the last checkpoint is restored at
// the end. With `linger`, the coordinator sleeps for a minute after it has ended the job.
//
// With CALLS=N in a worker's environment, each closure first reads the counter from its ps N times.
//
// Closure i of a step adds to row i mod 64 of the sharded variable, and to key i of the table. At the end,
// the coordinator prints the number of steps and four sums. They are those of the counter, the sharded
// variable, the other variable without its initial value, and the table. It also prints whether it was
// restarted, and the number of workers. With CHECKPOINTS, it then prints the restored step, whether a step is
// still recorded, and the sums after one more closure.
#include <unistd.h>

#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "support/compute.hpp"
#include "support/table_sums.hpp"
#include "until.hpp"

namespace {

namespace cs = capstan;

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kWidth = 16;
constexpr std::int64_t kStart = 5;
const cs::optimizers::SGD kAdd{.learning_rate = -1};  // a push adds its gradient to the rows

/// Per-worker object that knows the coordinator process that created it.
struct Owner {
  std::int64_t pid = 0;
};
Owner make_owner(std::int64_t pid) { return {pid}; }

void add_one(cs::Counter counter, cs::Variable<double> sharded, cs::Variable<std::int64_t> other,
             cs::DynamicTable<double> table, cs::PerWorker<Owner> owner, std::int64_t pid, std::int64_t i,
             std::int64_t microseconds) {
  if (owner->pid != pid) throw cs::Error(cs::Code::internal, "an object of another coordinator");
  const char* calls = std::getenv("CALLS");
  for (int call = 0; calls != nullptr && call < std::atoi(calls); ++call) (void)counter.value();
  const std::vector<double> ones(kWidth, 1);
  sharded.push(cs::IndexedSlices<double>{{i % kRows}, ones});
  table.push(cs::IndexedSlices<double>{{cs::key_of(i)}, ones});
  cs::compute_for(std::chrono::microseconds(microseconds));
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

/// Creates a variable with another shape, which must be rejected without changing the existing one.
void try_another_shape() {
  try {
    const cs::Variable<double> sharded("sharded", cs::Shape{kRows + 1, kWidth}, {}, {.optimizer = kAdd});
    std::printf("another shape was accepted\n");
  } catch (const cs::Error& error) {
    std::printf("refused: %s\n", error.what());
  }
}

void print_sums(const cs::Counter& counter, const cs::Variable<double>& sharded,
                const cs::Variable<std::int64_t>& other, const cs::DynamicTable<double>& table) {
  const std::vector<double> values = sharded.pull();
  std::printf("counter %lld\n", static_cast<long long>(counter.value()));
  std::printf("sharded %.0f\n", std::accumulate(values.begin(), values.end(), 0.0) / kWidth);
  std::printf("other %lld\n", static_cast<long long>(other.pull()[0] - kStart));
  std::printf("table %.0f\n", cs::sum_of(table) / kWidth);
}

void run(const cs::Cluster& cluster, int argc, char** argv) {
  const Until until(argv[1]);
  const std::int64_t closures = std::atoll(argv[2]);
  const std::int64_t microseconds = std::atoll(argv[3]);
  cs::ParameterServerStrategy strategy(cluster, {.variable_partitioner = cs::FixedShardsPartitioner{2}});
  const auto scope = strategy.scope();
  if (cluster.recovered()) try_another_shape();
  const cs::Counter counter("count");
  const cs::Variable<double> sharded("sharded", cs::Shape{kRows, kWidth}, {}, {.optimizer = kAdd});
  const cs::Variable<std::int64_t> other("other", cs::Array<std::int64_t>::vector({kStart}));
  const cs::DynamicTable<double> table("table", kWidth, {}, {.optimizer = kAdd, .max_keys = 4096});
  cs::ClusterCoordinator coordinator(strategy);
  const std::int64_t pid = getpid();
  const auto owner = coordinator.create_per_worker_resource<&make_owner>(pid);
  std::optional<cs::CheckpointManager> checkpoints;
  if (argc > 4) checkpoints.emplace(strategy, cs::CheckpointOptions{.directory = argv[4]});
  const std::int64_t first = cluster.recorded_step().value_or(0);
  coordinator.run_on_every_worker<&reach_all>(counter, sharded, other);
  std::fprintf(stderr, "begins after step %lld\n", static_cast<long long>(first));
  std::int64_t step = first;
  // Even if FILE exists, repeats the step that was in progress at the kill, and ends at a multiple of four.
  const auto must_continue = [&] { return until.is_file() && (step == first || step % 4 != 0); };
  for (; must_continue() || !until.reached(step); ++step) {
    for (std::int64_t i = 0; i < closures; ++i) {
      coordinator.schedule<&add_one>(counter, sharded, other, table, owner, pid, i, microseconds);
    }
    coordinator.record_step(step + 1);
    std::fprintf(stderr, "recorded %lld\n", static_cast<long long>(step + 1));
    if (checkpoints && step % 4 == 3) checkpoints->save(step + 1);
  }
  std::printf("steps %lld\n", static_cast<long long>(step));
  print_sums(counter, sharded, other, table);
  std::printf("recovered %d\n", cluster.recovered() ? 1 : 0);
  std::printf("workers %d\n", coordinator.workers());
  if (!checkpoints) return;
  std::printf("restored %lld\n", static_cast<long long>(checkpoints->restore_latest().value_or(-1)));
  std::printf("has_recorded_step %d\n", cluster.recorded_step() ? 1 : 0);
  coordinator.schedule<&add_one>(counter, sharded, other, table, owner, pid, 0, 0);
  coordinator.join();
  std::printf("after the restore\n");
  print_sums(counter, sharded, other, table);
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  run(cluster, argc, argv);
  if (argc > 5) {
    std::fprintf(stderr, "lingers\n");
    std::this_thread::sleep_for(std::chrono::minutes(1));  // the test kills it meanwhile
  }
  return 0;
}
