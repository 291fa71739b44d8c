// checkpoint_folder.cpp -- statfs, one bounded file, flock.
#include "launch/doctor/checkpoint_folder.hpp"

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
constexpr std::chrono::seconds kLongestWrite{3};
constexpr std::chrono::seconds kLongestLook{3};
constexpr std::uint64_t kLittleSpace = std::uint64_t{1} << 30;
/// A disk of its own writes faster; what is slower is a quota's or a network's end.
constexpr double kSlow = 20e6;

/// The folder, or the nearest one above it.
fs::path nearest_existing(const fs::path& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder, error);
  while (!fs::exists(path, error) && path != path.root_path()) path = path.parent_path();
  return path;
}

double write_bounded(int file, std::string& cannot_write) {
  const std::vector<char> block(kBlock, 'c');
  const auto start = Clock::now();
  std::size_t written = 0;
  for (std::size_t i = 0; i < kBlocks && Clock::now() - start < kLongestWrite; ++i) {
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
  // The numbers of statfs(2); those of Lustre, GPFS and BeeGFS from their own sources.
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

FolderLook look_at_folder(const std::string& folder) {
  FolderLook look;
  look.folder = folder;
  look.tried = nearest_existing(folder).string();
  struct statfs found {};
  if (statfs(look.tried.c_str(), &found) == 0) {
    // Through 32 bits: f_type is signed, and Btrfs's number has its highest bit set.
    look.file_system = file_system_name(static_cast<std::uint32_t>(found.f_type));
    look.free_bytes = static_cast<std::uint64_t>(found.f_bavail) * static_cast<std::uint64_t>(found.f_bsize);
  }
  const std::string name =
      fmt::format("{}/.capstan-doctor-{}-{}", look.tried, cluster::host_name(), getpid());
  const cluster::Socket file(open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) {
    look.cannot_write = fmt::format("open: {}", std::strerror(errno));
    return look;
  }
  (void)unlink(
      name.c_str());  // NFS keeps a file that is open under another name, and removes that at its end
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) look.cannot_lock = std::strerror(errno);
  look.bytes_per_second = write_bounded(file.get(), look.cannot_write);
  return look;
}

Finding judge_folder(const FolderLook& look) {
  const bool missing = look.folder != look.tried;
  const std::string where =
      missing ? fmt::format("{} does not exist; {}", look.folder, look.tried) : look.folder;
  if (!look.cannot_write.empty()) {
    return fail(fmt::format("{} ({}) cannot be written: {}", where, look.file_system, look.cannot_write),
                "another --checkpoint-dir, or its owner, mode, quota and mount on this host");
  }
  Finding finding =
      pass(fmt::format("{}: {}, {} free, {:.0f} MB/s for 16 MiB with fsync, locks {}", where,
                       look.file_system, bytes_text(look.free_bytes), look.bytes_per_second / 1e6,
                       look.cannot_lock.empty() ? "work" : "do not"));
  finding.alike = fmt::format("{} {}", where, look.file_system);  // space and speed differ with every look
  const auto also = [&](const char* about, const char* mend) {
    finding = both(std::move(finding), Finding{.verdict = Verdict::warn, .mend = mend, .alike = about});
  };
  if (missing)
    also("missing", "mkdir -p it, on a file system that all hosts see; a run makes it where it can");
  if (look.file_system == "tmpfs")
    also("tmpfs",
         "this is memory, lost with the host and not seen by others: --checkpoint-fast-dir is for that");
  if (!look.cannot_lock.empty())
    also("locks",
         "HDF5_USE_FILE_LOCKING=FALSE, and only one job at a time in that folder; or mount with locks");
  if (look.free_bytes < kLittleSpace)
    also("space", "make room: a checkpoint has all variables and their slots");
  if (look.bytes_per_second < kSlow)
    also("slow", "a faster file system, or --checkpoint-fast-dir on a local one");
  return finding;
}

std::string checkpoint_folder(const Request& request) {
  if (!request.checkpoint_dir.empty()) return request.checkpoint_dir;
  const char* variable = std::getenv("CAPSTAN_CHECKPOINT_DIR");
  return variable == nullptr ? "" : variable;
}

Finding check_checkpoint_folder(const Request& request) {
  const std::string folder = checkpoint_folder(request);
  if (folder.empty()) return skip("no --checkpoint-dir, so nothing was written");
  return judge_folder(look_at_folder(folder));
}

Mark::Mark(const std::string& folder)
    : path_(fmt::format("{}/.capstan-doctor-{}-{}-mark", nearest_existing(folder).string(),
                        cluster::host_name(), getpid())) {
  const cluster::Socket file(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) throw Error(Code::permission_denied, fmt::format("open {}: {}", path_, std::strerror(errno)));
}

Mark::~Mark() { (void)unlink(path_.c_str()); }

bool Mark::is_there(const std::string& path) {
  const auto deadline = Clock::now() + kLongestLook;
  while (access(path.c_str(), F_OK) != 0) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

Finding judge_shared_folder(const std::string& folder, int hosts, const std::vector<std::string>& blind,
                            const std::string& failure) {
  if (folder.empty()) return skip("no --checkpoint-dir");
  if (hosts < 2) return skip("one host");
  if (!failure.empty()) return skip("rank 0 can make no file there: " + failure);
  if (blind.empty()) return pass(fmt::format("{} hosts see the same folder", hosts));
  return fail(
      fmt::format("{} of {} hosts do not see what rank 0's has written there: {}", blind.size(), hosts,
                  fmt::join(blind, ", ")),
      "a file system that all hosts mount at the same path: every rank reads all parts of a checkpoint");
}

}  // namespace capstan::launch::doctor
