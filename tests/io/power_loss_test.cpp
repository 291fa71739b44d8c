// power_loss_test.cpp -- a power loss at any moment of a save leaves a complete checkpoint.
//
// Like leveldb's FaultInjectionTestEnv (util/fault_injection_test.cc): after a power loss, a file has the
// bytes of its last fsync and a directory the names of its last fsync. The test's fsync records both before
// it syncs.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>

#include "checkpoint_sample.hpp"
#include "io/file.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

/// The durable state of the disk.
class Disk {
 public:
  void note(int file) {
    struct stat status {};
    if (::fstat(file, &status) != 0) return;
    const fs::path path = fs::read_symlink("/proc/self/fd/" + std::to_string(file));
    Synced& synced = synced_[status.st_ino];
    // Kept open so that no other file gets its inode number.
    if (!synced.held) synced.held = FileDescriptor(::fcntl(file, F_DUPFD_CLOEXEC, 0));
    synced.bytes.clear();
    synced.names.clear();
    if (!S_ISDIR(status.st_mode)) {
      synced.bytes = read_whole_file(path);
      return;
    }
    for (const auto& entry : fs::directory_iterator(path)) {
      struct stat named {};
      if (::lstat(entry.path().c_str(), &named) == 0)
        synced.names[entry.path().filename()] = {named.st_ino, S_ISDIR(named.st_mode)};
    }
  }

  /// Writes the state of the directory after a power loss to another location.
  void put(const fs::path& scratch, const fs::path& to) const {
    struct stat status {};
    ASSERT_EQ(::stat(scratch.c_str(), &status), 0);
    write_directory(status.st_ino, to);
  }

 private:
  struct Name {
    ino_t number;
    bool is_directory;
  };
  struct Synced {
    FileDescriptor held = {};
    std::string bytes = {};
    std::map<fs::path, Name> names = {};
  };

  void write_directory(ino_t number, const fs::path& to) const {
    fs::create_directory(to);
    const auto found = synced_.find(number);
    if (found == synced_.end()) return;
    for (const auto& [name, what] : found->second.names) {
      if (what.is_directory) {
        write_directory(what.number, to / name);
      } else {
        const auto file = synced_.find(what.number);
        std::ofstream(to / name, std::ios::binary)
            << (file == synced_.end() ? std::string() : file->second.bytes);
      }
    }
  }

  std::map<ino_t, Synced> synced_;
};

/// Calls `note` at every fsync of this process until destruction.
class Watch {
 public:
  explicit Watch(std::function<void(int)> note) { current() = std::move(note); }
  ~Watch() { current() = nullptr; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  static std::function<void(int)>& current() {
    static std::function<void(int)> note;
    return note;
  }
};

class PowerLoss : public testing::Test {
 protected:
  /// Saves `arrays` and expects at every moment that one of `steps` survives a power loss.
  void save_while_power_fails(std::int64_t step, int seed, const std::set<std::int64_t>& steps) {
    int moments = 0;
    {
      const Watch watch([&](int file) {
        disk_.note(file);
        ++moments;
        expect_one_of(steps);
      });
      save(directory_, step, sample_arrays(seed), 2);
    }
    EXPECT_GT(moments, 5) << "fsync was not called";
  }

  /// Expects that the newest checkpoint is complete and of one of these steps.
  void expect_one_of(const std::set<std::int64_t>& steps) {
    const TemporaryDirectory after;
    disk_.put(scratch_.path(), after.path() / "run");
    if (steps.empty()) return;
    const FoundCheckpoint found = open_latest(after.path() / "run");
    EXPECT_TRUE(found.damaged.empty()) << found.damaged.front();
    EXPECT_TRUE(steps.contains(found.reader.step())) << found.reader.step();
  }

  TemporaryDirectory scratch_;
  CheckpointDirectory directory_{scratch_.path(), 1};
  Disk disk_;
};

TEST_F(PowerLoss, LeavesACompleteCheckpointAtEveryMoment) {
  save_while_power_fails(1, 1, {});
  expect_one_of({1});
  save_while_power_fails(2, 50, {1, 2});
  expect_one_of({2});
  save_while_power_fails(3, 7, {2, 3});
  expect_one_of({3});
}

TEST_F(PowerLoss, LeavesACompleteCheckpointWhileOneIsReplaced) {
  save_while_power_fails(1, 1, {});
  save_while_power_fails(1, 50, {1});
  const TemporaryDirectory after;
  disk_.put(scratch_.path(), after.path() / "run");
  expect_holds(open_latest(after.path() / "run").reader, sample_arrays(50));
}

TEST_F(PowerLoss, DetectsMissingSyncs) {
  {
    const Watch watch([&](int file) { disk_.note(file); });
    save(directory_, 1, sample_arrays(1), 2);
  }
  save(directory_, 2, sample_arrays(50), 2);  // as if fsync did nothing
  expect_one_of({1});
}

}  // namespace
}  // namespace capstan::io

/// Replaces the function of the C library for every library of this process.
extern "C" int fsync(int file) {
  using Fsync = int (*)(int);
  static const auto real = reinterpret_cast<Fsync>(::dlsym(RTLD_NEXT, "fsync"));
  if (const auto& note = capstan::io::Watch::current()) note(file);
  return real(file);
}
