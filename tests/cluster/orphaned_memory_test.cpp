// orphaned_memory_test.cpp -- removes exactly the shared memory that no process uses.
#include "cluster/supervisor/orphaned_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace capstan::cluster {
namespace {

using std::chrono::system_clock;

class OrphanedMemory : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/dev/shm/capstan_orphans_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  std::filesystem::path make(const std::string& name) const {
    std::ofstream(directory_ / name) << std::string(4096, 'x');
    return directory_ / name;
  }

  const system_clock::time_point began_ = system_clock::now();
  std::filesystem::path directory_;
};

TEST_F(OrphanedMemory, RemovesUnusedFiles) {
  const auto one = make("ucx_shm_posix_1"), two = make("ucx_shm_posix_2");
  EXPECT_EQ(remove_orphaned_memory(began_, directory_), 2);
  EXPECT_FALSE(exists(one) || exists(two));
  EXPECT_EQ(remove_orphaned_memory(began_, directory_), 0);
}

TEST_F(OrphanedMemory, KeepsOlderFilesAndFilesOfOtherUsers) {
  const auto old = make("ucx_shm_posix_1"), other = make("psm_1");
  EXPECT_EQ(remove_orphaned_memory(system_clock::now() + std::chrono::minutes(1), directory_), 0);
  EXPECT_TRUE(exists(old));
  EXPECT_EQ(remove_orphaned_memory(began_, directory_), 1);
  EXPECT_TRUE(exists(other));
}

TEST_F(OrphanedMemory, KeepsEmptyFilesAndLinks) {
  const auto empty = directory_ / "ucx_shm_posix_1", target = make("other"),
             link = directory_ / "ucx_shm_posix_2";
  std::ofstream{empty};
  create_symlink(target, link);
  EXPECT_EQ(remove_orphaned_memory(began_, directory_), 0);
  EXPECT_TRUE(exists(empty) && exists(link) && exists(target));
}

TEST_F(OrphanedMemory, KeepsOpenOrMappedFiles) {
  const auto file = make("ucx_shm_posix_1");
  const int opened = open(file.c_str(), O_RDONLY);
  ASSERT_GE(opened, 0);
  EXPECT_EQ(remove_orphaned_memory(began_, directory_), 0);
  void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, opened, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  close(opened);
  EXPECT_EQ(remove_orphaned_memory(began_, directory_), 0);
  munmap(mapped, 4096);
  EXPECT_EQ(remove_orphaned_memory(began_, directory_), 1);
}

TEST_F(OrphanedMemory, KeepsFilesOfAnotherProcessUntilItIsKilled) {
  const auto file = make("ucx_shm_posix_1");
  const int opened = open(file.c_str(), O_RDONLY);
  ASSERT_GE(opened, 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  close(opened);
  EXPECT_EQ(remove_orphaned_memory(began_, directory_), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(remove_orphaned_memory(began_, directory_), 1);
}

TEST_F(OrphanedMemory, AllowsConcurrentCalls) {
  for (int file = 0; file < 100; ++file) make("ucx_shm_posix_" + std::to_string(file));
  std::vector<std::thread> ranks;
  std::atomic<int> removed = 0;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&] { removed += remove_orphaned_memory(began_, directory_); });
  }
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(removed, 100);
}

/// Creates a segment in a process that has ended; returns its pid.
template <class Body>
pid_t run_in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  return child;
}

bool segment_exists(int id) {
  shmid_ds segment{};
  return shmctl(id, IPC_STAT, &segment) == 0;
}

class OrphanedSegments : public testing::Test {
 protected:
  const system_clock::time_point began_ = system_clock::now();
};

TEST_F(OrphanedSegments, RemovesSegmentsOfADeadCreator) {
  const pid_t creator = run_in_child([] { shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600); });
  EXPECT_EQ(remove_orphaned_segments(creator, began_ + std::chrono::minutes(1)), 0);  // an older segment
  EXPECT_EQ(remove_orphaned_segments(creator, began_), 1);
  EXPECT_EQ(remove_orphaned_segments(creator, began_), 0);
}

TEST_F(OrphanedSegments, KeepsAttachedSegmentsAndSegmentsOfOtherUsers) {
  const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  ASSERT_GE(id, 0);
  EXPECT_EQ(remove_orphaned_segments(run_in_child([] {}), began_), 0);
  void* attached = shmat(id, nullptr, 0);
  EXPECT_EQ(remove_orphaned_segments(getpid(), began_), 0);
  EXPECT_TRUE(segment_exists(id));
  shmdt(attached);
  EXPECT_EQ(remove_orphaned_segments(getpid(), began_), 1);
  EXPECT_FALSE(segment_exists(id));
}

}  // namespace
}  // namespace capstan::cluster
