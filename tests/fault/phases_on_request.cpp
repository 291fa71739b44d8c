// phases_on_request.cpp -- closures that each count 1 on every ps, in the phase that a test asks for.
//
//   mpirun -np 7 phases_on_request DIRECTORY --capstan-ps=2 --capstan-coordinator-wait=20s
//
// The test writes the name of a phase into DIRECTORY/phase (by rename, so that it is never read half
// written):
//
//   idle      nothing is scheduled
//   push      steps of kClosures closures, each step recorded
//   save      a step, then a checkpoint of it, again and again
//   restore   the latest checkpoint is restored, again and again
//   end       the sums are printed, and the job ends
//
// Standard error: "begins after N" once for each process of the coordinator, "PHASE K" for the K-th iteration
// of a phase since then, "ends" when the sums are printed. Standard output: "expected N", then for each ps
// "psI" and the sums of its rows, its optimizer slot and its counter. Exit code 4, with the error on standard
// error, when the job cannot go on.
//
// A checkpoint's step is the number of closures that it contains, so each process of the coordinator knows
// the expected sums from the recorded step or the checkpoint.
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "support/compute.hpp"

namespace {

namespace cs = capstan;

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kWidth = 16;
constexpr int kPs = 2;
constexpr std::int64_t kBallastRows = 1 << 16;  // 8 MiB, so that a fault can occur during a save
constexpr std::int64_t kClosures = 100;
constexpr std::chrono::microseconds kClosureTime(500);
constexpr std::chrono::milliseconds kIdleTime(50);

/// The variables that closures add to. Each ps holds the same share of every one.
struct Model {
  cs::Counter first{"first"};
  cs::Counter second{"second"};
  cs::Variable<double> sharded{
      "sharded", cs::Shape{kRows, kWidth}, {}, {.optimizer = cs::optimizers::SGD{.learning_rate = -1}}};
  cs::Variable<double> slots{
      "slots", cs::Shape{kPs, 1}, {}, {.optimizer = cs::optimizers::Adagrad{.learning_rate = -1}}};
  cs::Variable<double> ballast{"ballast", cs::Shape{kBallastRows, kWidth}};
};

void add_one(cs::Counter first, cs::Counter second, cs::Variable<double> sharded, cs::Variable<double> slots,
             std::int64_t i) {
  const std::vector<double> ones(kWidth, 1);
  const std::int64_t row = i % (kRows / kPs);
  sharded.push(cs::IndexedSlices<double>{{row}, ones});
  cs::compute_for(kClosureTime);
  sharded.push(cs::IndexedSlices<double>{{row + kRows / kPs}, ones});
  slots.push(cs::IndexedSlices<double>{{0, kPs - 1}, std::vector<double>(kPs, 1)});
  first.add(1);
  second.add(1);
}

/// Connects a worker to every ps and adds nothing.
bool reach_all(cs::Variable<double> sharded) {
  sharded.push(cs::IndexedSlices<double>{{0, kRows - 1}, std::vector<double>(2 * kWidth)});
  return true;
}

class Job {
 public:
  Job(const cs::Cluster& cluster, const std::filesystem::path& directory)
      : phase_file_(directory / "phase"),
        strategy_(cluster, {.variable_partitioner = cs::FixedShardsPartitioner{kPs}}),
        scope_(strategy_.scope()),
        coordinator_(strategy_),
        checkpoints_(strategy_, {.directory = directory / "checkpoints", .max_to_keep = 2}) {
    if (cluster.recovered() && cluster.recorded_step()) {
      counted_ = *cluster.recorded_step();
    } else if (cluster.recovered()) {
      restore();
    } else {
      checkpoints_.save(counted_);
    }
    coordinator_.run_on_every_worker<&reach_all>(model_.sharded);
    std::fprintf(stderr, "begins after %lld\n", static_cast<long long>(counted_));
  }

  /// Runs the phases until the test asks for the end.
  void run() {
    for (std::string phase = read_phase(); phase != "end"; phase = read_phase()) {
      if (phase == "push") {
        step();
      } else if (phase == "save") {
        step();
        checkpoints_.save(counted_);
      } else if (phase == "restore") {
        restore();
      } else {
        coordinator_.join();
        std::this_thread::sleep_for(kIdleTime);  // a fault occurs meanwhile
      }
      std::fprintf(stderr, "%s %d\n", phase.c_str(), ++iterations_[phase]);
    }
  }

  void print_sums() {
    const std::vector<double> rows = model_.sharded.pull();
    const std::vector<double> slots = model_.slots.pull();
    const auto half = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / kPs);
    std::printf("expected %lld\n", static_cast<long long>(counted_));
    std::printf("ps0 %.0f %.9f %lld\n", std::accumulate(rows.begin(), half, 0.0) / kWidth, slots[0],
                static_cast<long long>(model_.first.value()));
    std::printf("ps1 %.0f %.9f %lld\n", std::accumulate(half, rows.end(), 0.0) / kWidth, slots[1],
                static_cast<long long>(model_.second.value()));
    std::fflush(stdout);
    std::fprintf(stderr, "ends\n");
  }

 private:
  std::string read_phase() const {
    std::string phase;
    std::ifstream(phase_file_) >> phase;
    return phase;
  }

  void step() {
    for (std::int64_t i = 0; i < kClosures; ++i) {
      coordinator_.schedule<&add_one>(model_.first, model_.second, model_.sharded, model_.slots, i);
    }
    counted_ += kClosures;
    coordinator_.record_step(counted_);
  }

  void restore() {
    counted_ = checkpoints_.restore_latest().value_or(0);
    coordinator_.record_step(counted_);
  }

  std::filesystem::path phase_file_;
  cs::ParameterServerStrategy strategy_;
  cs::ParameterServerStrategy::Scope scope_;
  Model model_;
  cs::ClusterCoordinator coordinator_;
  cs::CheckpointManager checkpoints_;
  std::int64_t counted_ = 0;
  std::map<std::string, int> iterations_;
};

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  try {
    Job job(cluster, argv[1]);
    job.run();
    job.print_sums();
  } catch (const cs::Error& error) {
    std::fprintf(stderr, "%s: %s\n", std::string(cs::to_string(error.code())).c_str(), error.what());
    return 4;
  }
  return 0;
}
