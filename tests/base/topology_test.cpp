// topology_test.cpp -- hwloc's view of this host, compared with the kernel's.
#include "base/topology.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace capstan::topology {
namespace {

/// Anonymous memory of this process.
class MappedPages {
 public:
  explicit MappedPages(std::size_t bytes)
      : bytes_(bytes),
        memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~MappedPages() { ::munmap(memory_, bytes_); }
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

  std::span<std::byte> span() const { return {static_cast<std::byte*>(memory_), bytes_}; }
  /// Returns true if huge pages were requested at this offset ("hg" in VmFlags).
  bool advised(std::size_t offset) const {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_) + offset;
    std::ifstream maps("/proc/self/smaps");
    bool here = false;
    for (std::string line; std::getline(maps, line);) {
      unsigned long begin = 0;
      unsigned long end = 0;
      if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) here = begin <= address && address < end;
      if (here && line.starts_with("VmFlags:")) return line.find(" hg") != std::string::npos;
    }
    return false;
  }

 private:
  std::size_t bytes_;
  void* memory_;
};

TEST(Topology, CountsNumaNodes) { EXPECT_GE(numa_nodes(), 1); }

TEST(Topology, HasAtMostOneCorePerAllowedHardwareThread) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const std::vector<int> cores = allowed_cores();
  ASSERT_FALSE(cores.empty());
  EXPECT_LE(cores.size(), static_cast<std::size_t>(CPU_COUNT(&allowed)));
  EXPECT_GE(cores.front(), 0);
  EXPECT_TRUE(std::is_sorted(cores.begin(), cores.end()));
  EXPECT_EQ(std::set<int>(cores.begin(), cores.end()).size(), cores.size());
}

/// Binds all threads of this process, including those of libraries, to one hardware thread, until
/// destruction.
class BoundToOneThread {
 public:
  BoundToOneThread() {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      const pid_t thread = std::stoi(task.path().filename());
      cpu_set_t& before = before_[thread];
      EXPECT_EQ(::sched_getaffinity(thread, sizeof before, &before), 0);
      for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
        if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
      }
      EXPECT_EQ(::sched_setaffinity(thread, sizeof one, &one), 0);
    }
  }
  ~BoundToOneThread() {
    for (const auto& [thread, set] : before_) EXPECT_EQ(::sched_setaffinity(thread, sizeof set, &set), 0);
  }
  BoundToOneThread(const BoundToOneThread&) = delete;
  BoundToOneThread& operator=(const BoundToOneThread&) = delete;

 private:
  std::map<pid_t, cpu_set_t> before_;
};

TEST(Topology, AllowsOneCoreIfBoundToOneHardwareThread) {
  const std::vector<int> all = allowed_cores();
  std::vector<int> bound;
  {
    const BoundToOneThread binding;
    bound = allowed_cores();
  }
  ASSERT_EQ(bound.size(), 1U);
  EXPECT_TRUE(std::binary_search(all.begin(), all.end(), bound.front()));
  EXPECT_EQ(allowed_cores(), all);
}

TEST(Topology, AdvisesHugePagesOnlyForCompletePages) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
    GTEST_SKIP() << "this kernel has no transparent huge pages";
  }
  constexpr std::size_t kPage = 4096;
  const MappedPages pages(8 * kPage);
  advise_huge_pages(pages.span().subspan(kPage + 1, 100));  // within a page
  EXPECT_FALSE(pages.advised(kPage));
  advise_huge_pages(pages.span().subspan(kPage + 1, 4 * kPage));
  EXPECT_FALSE(pages.advised(kPage)) << "the range contains only a part of this page";
  EXPECT_TRUE(pages.advised(2 * kPage));
  EXPECT_TRUE(pages.advised(4 * kPage));
  EXPECT_FALSE(pages.advised(5 * kPage)) << "the range contains only a part of this page";
}

TEST(Topology, BoundMemoryIsWritableFromAnyThread) {
  const MappedPages pages(1 << 20);
  bind_near_this_thread(pages.span());
  std::jthread([&] { std::fill(pages.span().begin(), pages.span().end(), std::byte{7}); }).join();
  EXPECT_EQ(std::count(pages.span().begin(), pages.span().end(), std::byte{7}), 1 << 20);
  bind_near_this_thread({});
}

TEST(Topology, VersionsAreMajorAndMinor) {
  const std::regex version("[1-9][0-9]*\\.[0-9]+");
  EXPECT_TRUE(std::regex_match(hwloc_header_version(), version)) << hwloc_header_version();
  EXPECT_TRUE(std::regex_match(hwloc_version(), version)) << hwloc_version();
  // The loader would have rejected a library with another major version.
  EXPECT_EQ(hwloc_version().substr(0, hwloc_version().find('.')),
            hwloc_header_version().substr(0, hwloc_header_version().find('.')));
}

}  // namespace
}  // namespace capstan::topology
