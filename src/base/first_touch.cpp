// first_touch.cpp -- /proc/meminfo, and the control groups that this process is in.
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

constexpr std::uint64_t kMuch = std::numeric_limits<std::uint64_t>::max();
/// Between two looks: several ps of one host may take memory at the same time.
constexpr std::size_t kPieceBytes = std::size_t{256} << 20;
/// For everything else that runs here.
constexpr std::uint64_t kForOthers = std::uint64_t{128} << 20;

/// The number of a file that has nothing else; `kMuch` where there is none ("max", or no such file).
std::uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? number : kMuch;
}

/// The number behind a word that begins a line.
std::uint64_t number_after(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  std::string first;
  std::uint64_t number = 0;
  while (file >> first) {
    if (first == word) return file >> number ? number : kMuch;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kMuch;
}

/// A group's page cache counts against its limit, and goes when memory is wanted.
std::uint64_t left_in_group(const std::string& folder) {
  const std::uint64_t most = number_in(folder + "/memory.max");
  const std::uint64_t used = number_in(folder + "/memory.current");
  if (most == kMuch || used == kMuch) return kMuch;
  const std::uint64_t cache = number_after(folder + "/memory.stat", "inactive_file");
  const std::uint64_t held = used - std::min(used, cache == kMuch ? 0 : cache);
  return most - std::min(most, held);
}

/// "/a/b" of this process's line in the unified hierarchy.
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
  std::uint64_t left = kib == kMuch ? kMuch : kib * 1024;
  for (std::string group = own_group(); group.size() > 1; group.resize(group.rfind('/'))) {
    left = std::min(left, left_in_group("/sys/fs/cgroup" + group));
  }
  return left;
}

std::uint64_t check_memory_left(std::uint64_t wanted) {
  const std::uint64_t left = memory_left();
  if (left >= kForOthers && wanted <= left - kForOthers) return left - kForOthers;
  throw Error(Code::resource_exhausted,
              fmt::format("{} bytes of memory are wanted, and this host has {} left, of which {} are for "
                          "others",
                          wanted, left, kForOthers));
}

void touch_first(std::span<std::byte> memory) {
  topology::bind_near_this_thread(memory);
  topology::advise_huge_pages(memory);
  for (std::size_t done = 0; done < memory.size();) {
    // All that is still to come, so that what cannot end well does not begin.
    (void)check_memory_left(memory.size() - done);
    const std::size_t piece = std::min(kPieceBytes, memory.size() - done);
    std::memset(memory.data() + done, 0, piece);
    done += piece;
  }
}

}  // namespace capstan
