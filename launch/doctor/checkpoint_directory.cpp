// checkpoint_directory.cpp -- uses statfs, a file of bounded size, and flock.
#include "launch/doctor/checkpoint_directory.hpp"
#include "launch/units.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "cluster/bootstrap/socket.hpp"
#include "cluster/runtime.hpp"

namespace capstan::launch::doctor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlock = 1 << 20;
constexpr std::size_t kBlocks = 16;
constexpr std::chrono::seconds kMaxWriteTime{3};
constexpr std::chrono::seconds kVisibilityTimeout{3};
constexpr std::uint64_t kMinFreeBytes = std::uint64_t{1} << 30;
/// A single disk is faster than this, so a lower rate points to a quota or a saturated network.
constexpr double kMinBytesPerSecond = 20e6;

/// The directory, or its nearest existing ancestor.
fs::path nearest_existing(const fs::path& directory) {
  std::error_code error;
  fs::path path = fs::absolute(directory, error);
  while (!fs::exists(path, error) && path != path.root_path()) path = path.parent_path();
  return path;
}

double write_bounded(int file, std::string& cannot_write) {
  const std::vector<char> block(kBlock, 'c');
  const auto start = Clock::now();
  std::size_t written = 0;
  for (std::size_t i = 0; i < kBlocks && Clock::now() - start < kMaxWriteTime; ++i) {
    const ssize_t put = ::write(file, block.data(), block.size());
    if (put <= 0) {
      cannot_write = fmt::format("write: {}", std::strerror(errno));
      return 0;
    }
    written += static_cast<std::size_t>(put);
  }
  if (fsync(file) != 0) {
    cannot_write = fmt::format("fsync: {}", std::strerror(errno));
    return 0;
  }
  return static_cast<double>(written) / std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::string file_system_name(std::uint64_t type) {
  // Magic numbers from statfs(2), and from the source code of Lustre, GPFS and BeeGFS.
  constexpr std::array<std::pair<std::uint64_t, const char*>, 12> kNames{{{0x6969, "nfs"},
                                                                          {0x0BD00BD0, "lustre"},
                                                                          {0x47504653, "gpfs"},
                                                                          {0x19830326, "beegfs"},
                                                                          {0x00C36400, "ceph"},
                                                                          {0x01021994, "tmpfs"},
                                                                          {0xEF53, "ext4"},
                                                                          {0x58465342, "xfs"},
                                                                          {0x9123683E, "btrfs"},
                                                                          {0x794C7630, "overlay"},
                                                                          {0x65735546, "fuse"},
                                                                          {0x9FA0, "proc"}}};
  for (const auto& [number, name] : kNames) {
    if (number == type) return name;
  }
  return fmt::format("{:#x}", type);
}

DirectoryProbe probe_directory(const std::string& directory) {
  DirectoryProbe probe;
  probe.directory = directory;
  probe.probed = nearest_existing(directory).string();
  struct statfs found {};
  if (statfs(probe.probed.c_str(), &found) == 0) {
    // Converts to 32 bits first: f_type is signed, and sign extension would change the number of Btrfs.
    probe.file_system = file_system_name(static_cast<std::uint32_t>(found.f_type));
    probe.free_bytes = static_cast<std::uint64_t>(found.f_bavail) * static_cast<std::uint64_t>(found.f_bsize);
  }
  const std::string name =
      fmt::format("{}/.capstan-doctor-{}-{}", probe.probed, cluster::host_name(), getpid());
  const cluster::Socket file(open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) {
    probe.cannot_write = fmt::format("open: {}", std::strerror(errno));
    return probe;
  }
  (void)unlink(name.c_str());  // NFS renames an open file (.nfs...) and removes it on close
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) probe.cannot_lock = std::strerror(errno);
  probe.bytes_per_second = write_bounded(file.get(), probe.cannot_write);
  return probe;
}

Finding judge_directory(const DirectoryProbe& probe) {
  const bool missing = probe.directory != probe.probed;
  const std::string where =
      missing ? fmt::format("{} does not exist; {}", probe.directory, probe.probed) : probe.directory;
  if (!probe.cannot_write.empty()) {
    return fail(fmt::format("{} ({}) cannot be written: {}", where, probe.file_system, probe.cannot_write),
                "choose another --checkpoint-dir, or fix its owner, mode, quota or mount on this host");
  }
  Finding finding =
      pass(fmt::format("{}: {}, {} free, {} for 16 MiB with fsync, locks {}", where, probe.file_system,
                       bytes_text(probe.free_bytes), rate_text(probe.bytes_per_second, "B"),
                       probe.cannot_lock.empty() ? "work" : "do not work"));
  finding.group_key = fmt::format("{} {}", where, probe.file_system);  // space and speed differ between ranks
  const auto also = [&](const char* about, const char* fix) {
    finding = combine(std::move(finding), Finding{.verdict = Verdict::warn, .fix = fix, .group_key = about});
  };
  if (missing)
    also("missing",
         "create it with mkdir -p on a file system that all hosts share; a run creates it if it can");
  if (probe.file_system == "tmpfs")
    also("tmpfs",
         "use a shared file system: tmpfs is in the memory of this host and is lost if the host fails; it "
         "suits --checkpoint-fast-dir");
  if (!probe.cannot_lock.empty())
    also("locks",
         "mount it with file locking, or set HDF5_USE_FILE_LOCKING=FALSE and run one job at a time in it");
  if (probe.free_bytes < kMinFreeBytes)
    also("space", "delete files to make room: a checkpoint holds all variables and their slots");
  if (probe.bytes_per_second < kMinBytesPerSecond)
    also("slow", "use a faster file system, or --checkpoint-fast-dir on a local one");
  return finding;
}

std::string checkpoint_directory(const Request& request) {
  if (!request.checkpoint_dir.empty()) return request.checkpoint_dir;
  const char* variable = std::getenv("CAPSTAN_CHECKPOINT_DIR");
  return variable == nullptr ? "" : variable;
}

Finding check_checkpoint_directory(const Request& request) {
  const std::string directory = checkpoint_directory(request);
  if (directory.empty()) return skip("no --checkpoint-dir, so nothing was written");
  return judge_directory(probe_directory(directory));
}

MarkerFile::MarkerFile(const std::string& directory)
    : path_(fmt::format("{}/.capstan-doctor-{}-{}-mark", nearest_existing(directory).string(),
                        cluster::host_name(), getpid())) {
  const cluster::Socket file(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) throw Error(Code::permission_denied, fmt::format("open {}: {}", path_, std::strerror(errno)));
}

MarkerFile::~MarkerFile() { (void)unlink(path_.c_str()); }

bool MarkerFile::is_visible(const std::string& path) {
  const auto deadline = Clock::now() + kVisibilityTimeout;
  while (access(path.c_str(), F_OK) != 0) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

Finding judge_shared_directory(const std::string& directory, int hosts, const std::vector<std::string>& blind,
                               const std::string& failure) {
  if (directory.empty()) return skip("no --checkpoint-dir");
  if (hosts < 2) return skip("one host");
  if (!failure.empty()) return skip("rank 0 cannot create a file in --checkpoint-dir: " + failure);
  if (blind.empty()) return pass(fmt::format("{} hosts see the same directory", hosts));
  return fail(
      fmt::format("{} of {} hosts do not see the file that rank 0 created in --checkpoint-dir: {}",
                  blind.size(), hosts, fmt::join(blind, ", ")),
      "use a file system that all hosts mount at the same path: every rank reads all parts of a checkpoint");
}

}  // namespace capstan::launch::doctor
