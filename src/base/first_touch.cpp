// first_touch.cpp -- available memory from /proc/meminfo and the cgroup limits, and first-touch zeroing.
#include "base/first_touch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "base/topology.hpp"
#include "capstan/error.hpp"

namespace capstan {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
/// Memory is checked between pieces of this size, since several ps of a host may allocate at the same time.
constexpr std::size_t kPieceBytes = std::size_t{256} << 20;
/// Reserve for all other processes of the host.
constexpr std::uint64_t kReservedBytes = std::uint64_t{128} << 20;

/// Returns the number that is the only content of the file; `kUnlimited` for "max" and for a missing file.
std::uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? number : kUnlimited;
}

/// Returns the number that follows `word` at the start of a line; `kUnlimited` if there is no such line.
std::uint64_t number_after(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  std::string first;
  std::uint64_t number = 0;
  while (file >> first) {
    if (first == word) return file >> number ? number : kUnlimited;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kUnlimited;
}

/// Memory that a cgroup may still allocate. Its inactive page cache counts as free: the kernel reclaims it.
std::uint64_t left_in_group(const std::string& directory) {
  const std::uint64_t limit = number_in(directory + "/memory.max");
  const std::uint64_t used = number_in(directory + "/memory.current");
  if (limit == kUnlimited || used == kUnlimited) return kUnlimited;
  const std::uint64_t cache = number_after(directory + "/memory.stat", "inactive_file");
  const std::uint64_t held = used - std::min(used, cache == kUnlimited ? 0 : cache);
  return limit - std::min(limit, held);
}

/// Path of this process's cgroup in the unified hierarchy ("/a/b").
std::string own_group() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return "";
}

}  // namespace

std::uint64_t memory_left() {
  const std::uint64_t kib = number_after("/proc/meminfo", "MemAvailable:");
  std::uint64_t left = kib == kUnlimited ? kUnlimited : kib * 1024;
  for (std::string group = own_group(); group.size() > 1; group.resize(group.rfind('/'))) {
    left = std::min(left, left_in_group("/sys/fs/cgroup" + group));
  }
  return left;
}

std::uint64_t check_memory_left(std::uint64_t bytes) {
  const std::uint64_t left = memory_left();
  if (left >= kReservedBytes && bytes <= left - kReservedBytes) return left - kReservedBytes;
  throw Error(Code::resource_exhausted,
              fmt::format("cannot allocate {} bytes: this host has {} bytes of memory left, of which {} are "
                          "reserved for other processes; use more ranks or hosts",
                          bytes, left, kReservedBytes));
}

void touch_first(std::span<std::byte> memory) {
  topology::bind_near_this_thread(memory);
  topology::advise_huge_pages(memory);
  for (std::size_t done = 0; done < memory.size();) {
    // Checks all remaining bytes, so that an allocation that cannot succeed fails early.
    (void)check_memory_left(memory.size() - done);
    const std::size_t piece = std::min(kPieceBytes, memory.size() - done);
    std::memset(memory.data() + done, 0, piece);
    done += piece;
  }
}

}  // namespace capstan
