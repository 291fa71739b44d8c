// two_levels.cpp -- saves through --checkpoint-fast-dir, and restores what an earlier job saved.
//
//   mpirun -np 4 two_levels DIRECTORY FIRST LAST [MIB] --capstan-ps=2 --capstan-checkpoint-fast-dir=...
//
// Restores the latest checkpoint, if any. Then saves a checkpoint for each step from FIRST to LAST. Before
// each save, sets all elements of a table of MIB MiB to the step, and increments a counter in ten scheduled
// functions. The table has an optimizer slot of the same size. At the end, restores again. Prints "restored"
// and "again" with the step, "complete" or "torn" (if an element differs from the step), and the counter. An
// error is printed as "CODE: MESSAGE". Prints "begins to save STEP" and "saved STEP" to standard error.
#include <algorithm>
#include <capstan/capstan.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

namespace cs = capstan;

constexpr std::int64_t kWidth = 16;

void count_one(cs::Counter counter) { counter.add(1); }

class TwoLevels {
 public:
  TwoLevels(const cs::Cluster& cluster, const std::filesystem::path& directory, std::int64_t mebibytes)
      : strategy_(cluster, {.variable_partitioner = cs::FixedShardsPartitioner{cluster.count(cs::Role::ps)}}),
        scope_(strategy_.scope()),
        counter_("count"),
        table_("table", cs::Shape{mebibytes * 1024 * 1024 / (4 * kWidth), kWidth}, {},
               {.optimizer = cs::optimizers::Adagrad{}}),
        coordinator_(strategy_),
        checkpoints_(strategy_, {.directory = directory}) {}

  void restore(const char* word) {
    fill(-1);
    const auto step = checkpoints_.restore_latest();
    const std::vector<float> values = table_.pull();
    const auto wanted = static_cast<float>(step.value_or(-1));
    const bool complete = std::all_of(values.begin(), values.end(), [=](float v) { return v == wanted; });
    std::printf("%s %lld %s %lld\n", word, static_cast<long long>(step.value_or(-1)),
                complete ? "complete" : "torn", static_cast<long long>(counter_.value()));
    std::fflush(stdout);
  }

  void save(std::int64_t step) {
    fill(static_cast<float>(step));
    for (int i = 0; i < 10; ++i) coordinator_.schedule<&count_one>(counter_);
    coordinator_.join();
    std::fprintf(stderr, "begins to save %lld\n", static_cast<long long>(step));
    try {
      checkpoints_.save(step, "null", {.background = true});
      fill(-2);  // must not be saved
      checkpoints_.wait();
    } catch (const cs::Error& error) {
      if (error.code() != cs::Code::unavailable) throw;
      fill(static_cast<float>(step));
      checkpoints_.save(step);
    }
    std::fprintf(stderr, "saved %lld\n", static_cast<long long>(step));
  }

 private:
  void fill(float value) {
    table_.assign(std::vector<float>(static_cast<std::size_t>(table_.shape()[0] * kWidth), value));
  }

  cs::ParameterServerStrategy strategy_;
  cs::ParameterServerStrategy::Scope scope_;
  cs::Counter counter_;
  cs::Variable<float> table_;
  cs::ClusterCoordinator coordinator_;
  cs::CheckpointManager checkpoints_;
};

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  try {
    TwoLevels job(cluster, argv[1], argc > 4 ? std::atoll(argv[4]) : 1);
    job.restore("restored");
    for (std::int64_t step = std::atoll(argv[2]); step <= std::atoll(argv[3]); ++step) job.save(step);
    job.restore("again");
  } catch (const cs::Error& error) {
    std::printf("%s: %s\n", std::string(cs::to_string(error.code())).c_str(), error.what());
  }
  return 0;
}
