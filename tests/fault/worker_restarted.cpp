// worker_restarted.cpp -- one worker dies repeatedly; its per-worker objects are created again each time.
//
//   mpirun -np 5 worker_restarted DEATHS --capstan-ps=1
//
// Prints for each death how long the worker was down, and whether all checks passed.
#include <unistd.h>

#include <capstan/capstan.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "support/poll.hpp"

namespace {

namespace cs = capstan;

constexpr int kVictim = 1;
constexpr int kWidth = 4;

struct Tally {
  int start = 0;
  int calls = 0;
};
Tally make_tally(int start) { return {start, 0}; }
cs::Dataset<int> numbers() { return cs::Dataset<int>::range(10, 1000); }

struct Seen {
  std::int64_t pid = 0;
  int tally = 0;
  int number = 0;
  int looked_up = 0;
  double copy = 0;
};

/// Uses an object, a dataset, a table and a copy of this worker, and adds to a variable.
Seen use_all(cs::PerWorker<Tally> tally, cs::PerWorker<cs::Iterator<int>> dataset,
             cs::StaticHashTable<int, int> table, cs::PerWorkerVariable<double> copy,
             cs::Variable<double> w) {
  const std::vector<double> ones(kWidth, 1);
  w.push(cs::IndexedSlices<double>{{cs::current_worker_index()}, ones});
  return {getpid(), tally->start + ++tally->calls, dataset->next(), table.lookup(5), copy.values()[0]};
}

void die() { std::raise(SIGKILL); }

bool check(bool right, const char* what) {
  if (!right) std::printf("WRONG: %s\n", what);
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const int deaths = std::atoi(argv[1]);
  cs::ParameterServerStrategy strategy(cluster);
  const auto scope = strategy.scope();
  const cs::Variable<double> w("w", cs::Shape{64, kWidth}, {},
                               {.optimizer = cs::optimizers::SGD{.learning_rate = -1}});
  const cs::StaticHashTable<int, int> table("tens", {5, 6}, {50, 60}, 0);
  const cs::PerWorkerVariable<double> copy("copy", cs::Shape{3}, cs::initializers::constant(2.5));
  cs::ClusterCoordinator coordinator(strategy);
  const auto tally = coordinator.create_per_worker_resource<&make_tally>(100);
  const auto dataset = coordinator.create_per_worker_dataset<&numbers>();

  const int workers = coordinator.workers();
  const auto use = [&] { return coordinator.run_on_every_worker<&use_all>(tally, dataset, table, copy, w); };
  std::vector<Seen> before = use();
  bool right = check(static_cast<int>(before.size()) == workers, "every worker answers at the start");
  for (int death = 1; death <= deaths; ++death) {
    const auto begin = std::chrono::steady_clock::now();
    const auto dead = coordinator.schedule_on<&die>(kVictim);
    try {
      dead.fetch();
    } catch (const cs::Error& error) {
      right &= check(error.code() == cs::Code::aborted, "the function failed with its worker");
    }
    right &=
        check(cs::poll_until([&] { return coordinator.workers() == workers; }, std::chrono::seconds(100)),
              "the coordinator counts all workers again");
    std::printf("away %.3f\n",
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    const std::vector<Seen> now = use();
    if (!check(static_cast<int>(now.size()) == workers, "every worker answers again")) return 1;
    for (int worker = 0; worker < workers; ++worker) {
      const auto i = static_cast<std::size_t>(worker);
      const bool new_one = worker == kVictim;
      right &= check((now[i].pid != before[i].pid) == new_one, "only the worker that died has a new process");
      right &= check(now[i].tally == (new_one ? 101 : 101 + death), "a new process has a new object");
      right &= check(now[i].number == (new_one ? 10 : 10 + death), "a new process has a new dataset");
      right &=
          check(now[i].looked_up == 50 && now[i].copy == 2.5, "the table and the copy have their values");
    }
    before = now;
  }
  const std::vector<double> sums = w.pull();
  for (int worker = 0; worker < workers; ++worker) {
    right &= check(sums[static_cast<std::size_t>(worker) * kWidth] == deaths + 1, "each use counts once");
  }
  std::printf("%s\n", right ? "all checks passed" : "a check failed");
  return right ? 0 : 1;
}
