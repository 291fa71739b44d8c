// coordinator_memory_test.cpp -- records of a process are complete when the next process reads them.
#include "cluster/membership/coordinator_memory.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan::cluster {
namespace {

TEST(PersistentRecord, IsCompleteWheneverItsWriterIsKilled) {
  const auto memory = transport::PersistentMemory::create();
  EXPECT_TRUE(PersistentRecord(memory).read().empty());
  std::uint64_t last = 0;
  for (int time = 0; time < 20; ++time) {
    const pid_t writer = fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) {
      PersistentRecord record(memory);
      for (std::uint64_t number = last + 1;; ++number) {
        record.write(to_bytes(std::vector<std::uint64_t>(1 + number % 5000, number)));
      }
    }
    const PersistentRecord record(memory);
    std::vector<std::byte> bytes;
    do {
      usleep(2000);           // kills the writer at a random moment
      bytes = record.read();  // possibly while the writer writes
    } while (bytes.empty());
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    const auto numbers = from_bytes<std::vector<std::uint64_t>>(record.read());
    ASSERT_FALSE(numbers.empty());
    EXPECT_GE(numbers[0], last);  // unchanged if the writer was killed before its first write
    last = numbers[0];
    EXPECT_EQ(numbers, std::vector<std::uint64_t>(1 + last % 5000, last));
  }
}

TEST(PersistentRecord, IsBounded) {
  PersistentRecord record(transport::PersistentMemory::create());
  record.write(std::vector<std::byte>(PersistentRecord::kMaxBytes));
  EXPECT_EQ(record.read().size(), PersistentRecord::kMaxBytes);
  EXPECT_THROW(record.write(std::vector<std::byte>(PersistentRecord::kMaxBytes + 1)), Error);
  EXPECT_EQ(record.read().size(), PersistentRecord::kMaxBytes);
}

TEST(CoordinatorMemory, NextProcessReadsTheRecord) {
  const auto memory = transport::PersistentMemory::create();
  CoordinatorMemory first;
  first.set_persistent_memory(memory);
  EXPECT_FALSE(first.read().step);
  EXPECT_EQ(first.read().next_closure, 1U);
  first.change([](CoordinatorRecord& record) {
    record.step = 7;
    record.next_closure = 42;
    record.counters = {"a", "b"};
    record.workers.push_back({9, Role::worker, 1, "n1", 4711, {std::byte{1}}, {}});
  });
  first.change([](CoordinatorRecord& record) { record.lost = {9}; });
  CoordinatorMemory second;
  second.set_persistent_memory(memory);
  const CoordinatorRecord found = second.read();
  EXPECT_EQ(found.step, 7);
  EXPECT_EQ(found.next_closure, 42U);
  EXPECT_EQ(found.counters, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(found.lost, std::vector<std::int32_t>{9});
  ASSERT_EQ(found.workers.size(), 1U);
  EXPECT_EQ(found.workers[0].name(), "worker 1 (rank 9 on n1)");
}

TEST(CoordinatorMemory, NextProcessKnowsWaitingSpares) {
  using State = SpareRecord::State;
  const auto memory = transport::PersistentMemory::create();
  CoordinatorMemory first;
  first.set_persistent_memory(memory);
  EXPECT_TRUE(first.read().is_standby(3)) << "no spare has a task yet";
  first.change([](CoordinatorRecord& record) {
    record.spares = {{3, State::standby},
                     {4, State::failing_over, 6, 1, 1},
                     {5, State::active, 7, 2, 2},
                     {8, State::dead}};
  });
  CoordinatorMemory second;
  second.set_persistent_memory(memory);
  const CoordinatorRecord found = second.read();
  EXPECT_TRUE(found.is_standby(3));
  for (const int rank : {4, 5, 8}) EXPECT_FALSE(found.is_standby(rank)) << rank;
  EXPECT_EQ(found.spares[2].ps, 7);
  EXPECT_EQ(found.spares[2].incarnation, 2U);
}

TEST(CoordinatorMemory, WithoutSharedMemoryIsPrivateToTheProcess) {
  CoordinatorMemory memory;
  memory.change([](CoordinatorRecord& record) { record.step = 3; });
  EXPECT_EQ(memory.read().step, 3);
}

}  // namespace
}  // namespace capstan::cluster
