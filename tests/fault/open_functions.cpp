// open_functions.cpp -- functions that no recorded step covers, while the coordinator and then a ps are
// killed.
//
//   mpirun -np 3 open_functions FUNCTIONS FILE assign|count --capstan-ps=1 --capstan-coordinator-wait=20s
//
// The first coordinator makes one push, assigning 7 to a variable or adding 7 to a counter, and records a
// step. Every coordinator then schedules FUNCTIONS functions, each of which adds 1 in each of its replicas to
// another variable and another counter. Prints "open" to standard error once they have ended, and waits until
// FILE exists.
//
// Prints the values of the two variables and the two counters at the end.
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/poll.hpp"

namespace {

namespace cs = capstan;

void add_ones(cs::Variable<std::int64_t> sum, cs::Counter sum_counter) {
  cs::get_replicas().run([&] {
    sum.push(cs::IndexedSlices<std::int64_t>{{0}, {1}});
    sum_counter.add(1);
    return true;
  });
}

void run(const cs::Cluster& cluster, std::int64_t functions, const std::filesystem::path& end,
         const std::string& push) {
  cs::ParameterServerStrategy strategy(cluster);
  const auto scope = strategy.scope();
  const cs::Variable<std::int64_t> assigned("assigned", cs::Shape{1});
  const cs::Counter counted("counted");
  const cs::Variable<std::int64_t> sum("sum", cs::Shape{1}, {},
                                       {.optimizer = cs::optimizers::SGD{.learning_rate = -1}});
  const cs::Counter sum_counter("sum_counter");
  cs::ClusterCoordinator coordinator(strategy);
  if (!cluster.recovered()) {
    if (push == "count") {
      counted.add(7);
    } else {
      assigned.assign(std::vector<std::int64_t>{7});
    }
    coordinator.record_step(1);
  }
  for (std::int64_t i = 0; i < functions; ++i) coordinator.schedule<&add_ones>(sum, sum_counter);
  coordinator.join();
  std::fprintf(stderr, "open\n");
  if (!cs::poll_until([&] { return std::filesystem::exists(end); }, std::chrono::minutes(5)))
    throw cs::Error(cs::Code::deadline_exceeded, "the test did not create " + end.string());
  std::printf("assigned %lld\n", static_cast<long long>(assigned.pull()[0]));
  std::printf("counted %lld\n", static_cast<long long>(counted.value()));
  std::printf("sum %lld\n", static_cast<long long>(sum.pull()[0]));
  std::printf("sum_counter %lld\n", static_cast<long long>(sum_counter.value()));
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  run(cluster, std::atoll(argv[1]), argv[2], argv[3]);
  return 0;
}
