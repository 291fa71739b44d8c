// persistent_memory_test.cpp -- memory of a dead process keeps its content for processes that map it.
#include "transport/memory/persistent_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "support/expect_error.hpp"
#include "support/in_a_process.hpp"

namespace capstan::transport {
namespace {

constexpr std::uint64_t kFirst = PersistentMemory::kFirstOffset;
constexpr std::uint64_t kPage = 4096;

TEST(PersistentMemory, KeepsTheContentOfAKilledProcess) {
  const auto memory = PersistentMemory::create();
  EXPECT_FALSE(memory->was_mapped());
  const pid_t writer = fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    const auto mine = memory->map(kFirst, 2 * kPage);
    mine[0] = std::byte{7};
    mine[2 * kPage - 1] = std::byte{9};
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(memory->was_mapped());
  const auto found = memory->map(kFirst, 2 * kPage);
  EXPECT_EQ(found[0], std::byte{7});
  EXPECT_EQ(found[1], std::byte{0});
  EXPECT_EQ(found[2 * kPage - 1], std::byte{9});
}

TEST(PersistentMemory, IsMappedByOtherProcessesByItsLocation) {
  const auto memory = PersistentMemory::create();
  const auto mine = memory->map(kFirst, 2 * kPage);
  mine[kPage] = std::byte{5};
  std::byte* theirs = map_persistent(memory->location(kFirst + kPage), kPage);
  ASSERT_NE(theirs, nullptr);
  EXPECT_EQ(theirs[0], std::byte{5});
  theirs[1] = std::byte{6};
  EXPECT_EQ(mine[kPage + 1], std::byte{6});
}

TEST(PersistentMemory, IsNotMappedByAnotherLocation) {
  const auto memory = PersistentMemory::create();
  (void)memory->map(kFirst, kPage);
  FileLocation of_another = memory->location(kFirst);
  ++of_another.id;  // the descriptor of another file
  EXPECT_EQ(map_persistent(of_another, kPage), nullptr);
  FileLocation nowhere = memory->location(kFirst);
  nowhere.path = "/proc/self/fd/no-such-descriptor";
  EXPECT_EQ(map_persistent(nowhere, kPage), nullptr);
  EXPECT_EQ(map_persistent({}, kPage), nullptr);
}

TEST(PersistentMemory, IsZeroAfterItWasUnmapped) {
  const auto memory = PersistentMemory::create();
  const auto kept = memory->map(kFirst, kPage);
  const std::array<std::span<std::byte>, 1> dropped{memory->map(kFirst + kPage, kPage)};
  kept[0] = std::byte{1};
  std::fill(dropped[0].begin(), dropped[0].end(), std::byte{2});
  const std::byte* theirs = map_persistent(memory->location(kFirst + kPage), kPage);
  ASSERT_NE(theirs, nullptr);
  memory->unmap(kFirst + kPage, dropped);
  EXPECT_EQ(kept[0], std::byte{1});
  EXPECT_EQ(theirs[0], std::byte{0});
  const auto again = memory->map(kFirst + kPage, kPage);
  EXPECT_TRUE(std::all_of(again.begin(), again.end(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(PersistentMemory, IsAdoptedByAProgramThatInheritsTheFile) {
  const auto memory = PersistentMemory::create();
  memory->map(kFirst, kPage)[3] = std::byte{8};
  const auto adopted = PersistentMemory::adopt(FileDescriptor(dup(memory->descriptor())), getpid());
  EXPECT_TRUE(adopted->was_mapped());
  EXPECT_EQ(adopted->map(kFirst, kPage)[3], std::byte{8});
  EXPECT_EQ(adopted->location(kFirst).id, memory->location(kFirst).id);
  const std::byte* theirs = map_persistent(adopted->location(kFirst), kPage);
  ASSERT_NE(theirs, nullptr);
  EXPECT_EQ(theirs[3], std::byte{8});
}

TEST(PersistentMemory, IsNotAdoptedFromAnotherFile) {
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(zeros, 0);
  expect_error_naming(Code::failed_precondition, {std::to_string(zeros), std::to_string(getpid())},
                      [&] { (void)PersistentMemory::adopt(FileDescriptor(zeros), getpid()); });
}

TEST(PersistentMemory, ReportsAFileSizeLimitAndKeepsTheSignalHandler) {
  EXPECT_TRUE(in_a_process([] {
    signal(SIGXFSZ, SIG_DFL);
    const auto memory = PersistentMemory::create();
    const rlimit limit{kFirst, kFirst};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      (void)memory->map(kFirst, kPage);
    } catch (const Error& error) {
      return error.code() == Code::resource_exhausted && signal(SIGXFSZ, SIG_DFL) == SIG_DFL;
    }
    return false;
  }));
}

TEST(PersistentMemory, HasAUniqueId) {
  const auto one = PersistentMemory::create();
  const auto other = PersistentMemory::create();
  EXPECT_NE(one->location(kFirst).id, other->location(kFirst).id);
}

}  // namespace
}  // namespace capstan::transport
