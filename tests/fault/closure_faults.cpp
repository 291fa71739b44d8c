// closure_faults.cpp -- closures that fail in typical ways, and a ps without memory or disk space; the
// cluster must work after each fault.
//
//   mpirun -np 5 closure_faults errors|endless --capstan-ps=2
//   mpirun -np 5 closure_faults disk|disk-of-one|memory DIRECTORY --capstan-ps=2
//
// Prints "NAME CODE: MESSAGE" for each error, and then "works N" if N functions have counted.
#include <sys/resource.h>
#include <unistd.h>

#include <capstan/capstan.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

namespace cs = capstan;
using namespace std::chrono_literals;

constexpr int kHealthy = 50;

/// An exception type of the program.
struct Misfit : std::runtime_error {
  explicit Misfit(int shoe) : std::runtime_error("no foot fits shoe " + std::to_string(shoe)) {}
};

void throw_misfit() { throw Misfit(43); }
void throw_number() { throw 7; }  // NOLINT

/// Allocates more memory than a temporary limit of the address space allows.
void take_too_much() {
  rlimit before{};
  (void)getrlimit(RLIMIT_AS, &before);
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (256 << 20);
  (void)setrlimit(RLIMIT_AS, &tight);
  const auto lift = [&before](void*) { (void)setrlimit(RLIMIT_AS, &before); };
  const std::unique_ptr<void, decltype(lift)> lifted(&before, lift);
  const std::vector<char> much(std::size_t{4} << 30, 'x');
  std::printf("%c", much.back());
}

/// Writes until the disk is full.
void fill_disk(const std::string& directory) {
  const std::string name = directory + "/filler";
  std::FILE* file = std::fopen(name.c_str(), "wb");
  if (file == nullptr) throw std::system_error(errno, std::generic_category(), name);
  const std::vector<char> block(1 << 16, 'x');
  while (std::fwrite(block.data(), 1, block.size(), file) == block.size() && std::fflush(file) == 0) {
  }
  const int why = errno;
  std::fclose(file);
  throw std::system_error(why, std::generic_category(), name);
}

void never_end() {
  while (true) pause();
}

void add_one(cs::Counter counter, cs::Variable<float> table, std::int64_t i) {
  table.push(cs::IndexedSlices<float>{{i % 8}, std::vector<float>(4, -1)});
  counter.add(1);
}

void fill_first_shard_alone(const cs::Partition& partition, std::span<float> out) {
  if (partition.partition_offset[0] > 0) throw Misfit(12);
  for (float& value : out) value = 1;
}

class Faults {
 public:
  explicit Faults(const cs::Cluster& cluster)
      : strategy_(cluster, {.variable_partitioner = cs::FixedShardsPartitioner{2}}),
        scope_(strategy_.scope()),
        counter_("count"),
        table_("table", cs::Shape{8, 4}, {}, {.optimizer = cs::optimizers::SGD{.learning_rate = 1}}),
        coordinator_(strategy_) {}

  void expect(const char* what, const std::function<void()>& fails) {
    try {
      fails();
      std::printf("%s no error\n", what);
    } catch (const cs::Error& error) {
      std::printf("%s %s: %s\n", what, std::string(cs::to_string(error.code())).c_str(), error.what());
    }
    std::fflush(stdout);
  }

  void expect_works() {
    for (int i = 0; i < kHealthy; ++i) coordinator_.schedule<&add_one>(counter_, table_, i);
    coordinator_.join();
    functions_ += kHealthy;
    double sum = 0;
    for (const float value : table_.pull()) sum += value;
    if (sum != 4.0 * functions_ || counter_.value() != functions_) std::printf("wrong sums: %f\n", sum);
    std::printf("works %d\n", functions_);
    std::fflush(stdout);
  }

  void errors() {
    for (int round = 0; round < 2; ++round) {
      coordinator_.schedule<&throw_misfit>();
      expect("own", [&] { coordinator_.join(); });
      expect_works();
      coordinator_.schedule<&throw_number>();
      expect("number", [&] { coordinator_.join(); });
      expect_works();
      coordinator_.schedule<&take_too_much>();
      expect("closure-memory", [&] { coordinator_.join(); });
      expect_works();
    }
  }

  void memory(const std::string& directory) {
    const auto loads = [this] {
      std::string text;
      for (const cs::PsLoad& load : strategy_.loads())
        text += std::to_string(load.shards) + " shards " + std::to_string(load.bytes) + " bytes; ";
      return text;
    };
    const std::string before = loads();
    for (int round = 0; round < 3; ++round) {
      // 16 TiB, the same with slots, and a table of which only one half can be created.
      expect("ps-memory", [] {
        cs::Variable<float>("huge", cs::Shape{std::int64_t{1} << 32, 1024}, {}, {});
      });
      expect("ps-slots", [] {
        cs::Variable<double>("slots", cs::Shape{std::int64_t{1} << 32, 128}, {},
                             {.optimizer = cs::optimizers::Adam{}});
      });
      expect("half", [] {
        cs::Variable<float>("half", cs::Shape{64, 1 << 16},
                            cs::from_partitions<float, &fill_first_shard_alone>());
      });
      if (loads() != before) std::printf("loads are %s were %s\n", loads().c_str(), before.c_str());
      expect_works();
    }
    const cs::Variable<float> huge("huge", cs::Shape{64, 4}, cs::initializers::constant(3));
    const cs::Variable<float> half("half", cs::Shape{64, 4}, cs::initializers::constant(4));
    std::printf("huge %.0f half %.0f\n", huge.pull().back(), half.pull().front());
    expect_works();
    cs::CheckpointManager(strategy_, {.directory = directory + "/checkpoints"}).save(1);
    std::printf("saved\n");
    expect_works();
  }

  void disk(const std::string& directory) {
    // 8 MiB for each ps; the directory has space for two checkpoints.
    const cs::Variable<float> weights("weights", cs::Shape{4096, 1024}, cs::initializers::constant(1));
    cs::CheckpointManager checkpoints(strategy_, {.directory = directory + "/checkpoints", .max_to_keep = 0});
    checkpoints.save(1);
    coordinator_.schedule<&fill_disk>(directory);
    expect("closure-disk", [&] { coordinator_.join(); });
    expect_works();
    weights.assign_add(std::vector<float>(4096 * 1024, 1));
    for (int round = 0; round < 2; ++round) {
      expect("save", [&] { checkpoints.save(2); });
      expect_works();
    }
    std::printf("latest %d\n", static_cast<int>(checkpoints.latest().value_or(-1)));
    std::filesystem::remove(directory + "/filler");
    checkpoints.save(3);
    std::printf("latest %d\n", static_cast<int>(checkpoints.latest().value_or(-1)));
    weights.assign(std::vector<float>(4096 * 1024, 9));
    checkpoints.restore_latest();
    std::printf("weights %.0f\n", weights.pull().back());
  }

  /// Each ps writes 8 MiB. After the first checkpoint, the disk has space for only one ps's part of the next.
  void disk_of_one(const std::string& directory) {
    const cs::Variable<float> weights("weights", cs::Shape{4096, 1024}, cs::initializers::constant(1));
    cs::CheckpointManager checkpoints(strategy_, {.directory = directory + "/checkpoints", .max_to_keep = 0});
    const auto list = [directory] {
      std::set<std::string> names;
      for (const auto& entry : std::filesystem::directory_iterator(directory + "/checkpoints"))
        if (entry.is_directory()) names.insert(entry.path().filename());
      for (const std::string& name : names) std::printf("there %s\n", name.c_str());
    };
    const auto restore = [&] {
      weights.assign(std::vector<float>(4096 * 1024, 9));
      const auto step = checkpoints.restore_latest();
      const std::vector<float> values = weights.pull();
      std::printf("restored %d %.0f %.0f\n", static_cast<int>(step.value_or(-1)), values.front(),
                  values.back());
    };
    checkpoints.save(1);
    weights.assign_add(std::vector<float>(4096 * 1024, 1));
    for (const bool background : {false, true}) {
      expect("save", [&] {
        checkpoints.save(2, "null", {.background = background});
        checkpoints.wait();
      });
      expect_works();
    }
    const std::vector<float> table = table_.pull();
    restore();
    weights.assign(std::vector<float>(4096 * 1024, 3));
    table_.assign(table);
    counter_.add(functions_ - counter_.value());
    std::filesystem::remove(directory + "/filler");
    ::sync();  // btrfs may count removed files for its quota until then
    checkpoints.save(3);
    list();
    restore();
    expect_works();
  }

  /// Schedules an endless function for each worker. Workers that exceed the deadline are restarted.
  void endless() {
    for (int round = 0; round < 2; ++round) {
      const int workers = coordinator_.workers();
      for (int i = 0; i < workers; ++i)
        coordinator_.schedule_with<&never_end>({.affinity = i, .deadline = 200ms});
      const auto begin = std::chrono::steady_clock::now();
      expect("endless", [&] { coordinator_.join(); });
      if (std::chrono::steady_clock::now() - begin > 20s) std::printf("endless took too long\n");
      expect_works();
    }
  }

 private:
  cs::ParameterServerStrategy strategy_;
  cs::ParameterServerStrategy::Scope scope_;
  cs::Counter counter_;
  cs::Variable<float> table_;
  cs::ClusterCoordinator coordinator_;
  int functions_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::string what = argc > 1 ? argv[1] : "";
  Faults faults(cluster);
  std::fprintf(stderr, "begins\n");
  if (what == "errors") faults.errors();
  if (what == "memory") faults.memory(argv[2]);
  if (what == "disk") faults.disk(argv[2]);
  if (what == "disk-of-one") faults.disk_of_one(argv[2]);
  if (what == "endless") faults.endless();
  return 0;
}
