// checkpoint_memory.cpp -- one large variable, saved or restored while a test measures the ps.
//
//   mpirun -np N checkpoint_memory DIRECTORY MIB save|restore --capstan-ps=P
//
// The values of the variable take MIB MiB, and with the optimizer's slots three times as much. With
// `restore`, the program waits for the file "create", "restore" or "end" in DIRECTORY before it creates the
// variable, restores or ends.
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/poll.hpp"

namespace {

namespace cs = capstan;

void wait_for(const std::filesystem::path& file) {
  std::fprintf(stderr, "before %s\n", file.filename().c_str());
  cs::poll_until([&] { return std::filesystem::exists(file); }, std::chrono::minutes(1));
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::filesystem::path directory = argv[1];
  const bool restores = std::string(argv[3]) == "restore";
  const std::int64_t rows = std::atoll(argv[2]) * 1024;  // a row has 1 KiB
  cs::ParameterServerStrategy strategy(
      cluster, {.variable_partitioner = cs::FixedShardsPartitioner{cluster.count(cs::Role::ps)}});
  const auto scope = strategy.scope();
  if (restores) wait_for(directory / "create");
  const cs::Variable<float> table("table", cs::Shape{rows, 256}, cs::initializers::uniform(-1, 1, 7),
                                  {.optimizer = cs::optimizers::Adam{}});
  cs::CheckpointManager checkpoints(strategy, {.directory = directory / "checkpoints"});
  if (!restores) {
    checkpoints.save(1);
    return 0;
  }
  wait_for(directory / "restore");
  const bool restored = checkpoints.restore_latest() == 1;
  wait_for(directory / "end");
  return restored ? 0 : 1;
}
