// orphaned_memory.cpp -- who uses a file is read from /proc.
#include "cluster/orphaned_memory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace capstan::cluster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "ucx_shm_posix_";
/// Of the namespace that has all processes: PROC_PID_INIT_INO of Linux's include/linux/proc_ns.h.
constexpr std::string_view kAllProcesses = "pid:[4026531836]";
/// A file's times are those of a clock that ticks more slowly.
constexpr std::chrono::seconds kTick{1};

bool sees_all_processes() {
  std::error_code error;
  return fs::read_symlink("/proc/self/ns/pid", error) == kAllProcesses && !error;
}

std::vector<fs::path> young_segments(const fs::path& folder, std::chrono::system_clock::time_point since) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    struct stat file {};
    if (!at->path().filename().string().starts_with(kPrefix) || ::stat(at->path().c_str(), &file) != 0) {
      continue;
    }
    const auto made = std::chrono::system_clock::from_time_t(file.st_ctim.tv_sec);
    if (file.st_uid == ::geteuid() && made + kTick >= since) found.push_back(at->path());
  }
  return found;
}

/// A process of this user that cannot be looked at counts as one that does.
bool may_use(const fs::path& process, const fs::path& file) {
  std::error_code error;
  for (fs::directory_iterator at(process / "fd", error), end; !error && at != end; at.increment(error)) {
    std::error_code closed_meanwhile;
    if (fs::read_symlink(at->path(), closed_meanwhile) == file && !closed_meanwhile) return true;
  }
  if (error == std::errc::permission_denied) {
    struct stat owner {};
    return ::stat(process.c_str(), &owner) == 0 && owner.st_uid == ::geteuid();
  }
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(file.native())) return true;
  }
  return false;
}

bool is_in_use(const fs::path& file) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos && may_use(entry.path(), file)) return true;
  }
  return false;
}

}  // namespace

int remove_orphaned_memory(std::chrono::system_clock::time_point since, const fs::path& folder) noexcept {
  int removed = 0;
  try {
    if (!sees_all_processes()) return 0;
    for (const fs::path& file : young_segments(folder, since)) {
      std::error_code error;
      if (!is_in_use(file) && fs::remove(file, error)) ++removed;
    }
  } catch (const std::exception&) {
    // No memory, or no /proc: it stays until the host starts again.
  }
  return removed;
}

}  // namespace capstan::cluster
