// lifetimes.cpp -- lifetimes of strategies, and of the objects that workers create, in a job of ranks.
//
//   mpirun -np N lifetimes objects     drops 20 objects and 20 datasets; waits until they are destroyed
//   mpirun -np N lifetimes strategies  creates a second strategy beside the first and after it; joins again
//
// Prints one line for each observation.
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/poll.hpp"

namespace {

namespace cs = capstan;

int living = 0;  // number of live objects in this process

struct Counted {
  explicit Counted(int what) : value(what) { ++living; }
  Counted(const Counted& other) : value(other.value) { ++living; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --living; }
  int value;
};

Counted make_counted(int value) { return Counted(value); }
int value_of(cs::PerWorker<Counted> object) { return object->value; }
cs::Iterator<int> counted_numbers(int first) {
  return cs::Iterator<int>([first, counted = Counted(0)]() mutable -> std::optional<int> { return first++; });
}
int next_of(cs::PerWorker<cs::Iterator<int>> numbers) { return numbers->next(); }
int living_here() { return living; }

int living_on_all(cs::ClusterCoordinator& coordinator) {
  int sum = 0;
  for (const int there : coordinator.run_on_every_worker<&living_here>()) sum += there;
  return sum;
}

void count_objects(cs::ClusterCoordinator& coordinator) {
  std::vector<cs::PerWorker<Counted>> objects;
  std::vector<cs::PerWorker<cs::Iterator<int>>> datasets;
  for (int i = 0; i < 20; ++i) {
    objects.push_back(coordinator.create_per_worker_resource<&make_counted>(i));
    datasets.push_back(coordinator.create_per_worker_dataset<&counted_numbers>(i));
    (void)coordinator.run_on_every_worker<&value_of>(objects.back());
    (void)coordinator.run_on_every_worker<&next_of>(datasets.back());
  }
  std::printf("%d living with %zu handles on %d workers\n", living_on_all(coordinator),
              objects.size() + datasets.size(), coordinator.workers());
  objects.clear();
  datasets.clear();
  cs::poll_until([&] { return living_on_all(coordinator) == 0; }, std::chrono::seconds(60));
  std::printf("%d living without a handle\n", living_on_all(coordinator));
  const auto numbers = cs::Dataset<int>::range(5).map([](int x) { return x + 100; });
  const auto shared = coordinator.create_per_worker_dataset(numbers);
  for (const int first : coordinator.run_on_every_worker<&next_of>(shared)) std::printf("first %d\n", first);
}

void print_error(const char* what, const std::function<void()>& call) {
  try {
    call();
    std::printf("%s: no error\n", what);
  } catch (const cs::Error& error) {
    std::printf("%s: %s: %s\n", what, std::string(cs::to_string(error.code())).c_str(), error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::string mode = argc > 1 ? argv[1] : "";
  {
    cs::ParameterServerStrategy strategy(cluster);
    cs::ClusterCoordinator coordinator(strategy);
    if (mode == "objects") {
      count_objects(coordinator);
      return 0;
    }
    (void)coordinator.run_on_every_worker<&living_here>();
    print_error("beside", [&] { cs::ParameterServerStrategy second(cluster); });
  }
  print_error("after", [&] { cs::ParameterServerStrategy second(cluster); });
  print_error("join", [&] { (void)cs::Cluster::join(argc, argv); });
  return 0;
}
