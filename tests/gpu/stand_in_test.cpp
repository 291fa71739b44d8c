// stand_in_test.cpp -- stand-ins run work in order while a thread waits, and have limited memory.
#include "gpu/stand_in.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <stdexcept>

#include "capstan/error.hpp"
#include "gpu/each.cuh"
#include "gpu/gpu.hpp"
#include "gpu/real_gpu.hpp"
#include "gpu/row_bodies.hpp"

namespace capstan::gpu {
namespace {

class StandIns : public testing::Test {
 protected:
  void SetUp() override { use_stand_ins(2, 1000); }
  void TearDown() override { use_stand_ins(0); }
};

TEST(WithoutStandIns, RealGpusAreReported) {
  EXPECT_FALSE(are_stand_ins());
  EXPECT_EQ(why_none().empty(), count() > 0);
  EXPECT_THROW((void)info(count()), Error);
  EXPECT_THROW(Stream{count()}, Error);
  EXPECT_THROW(Memory(count(), 1), Error);
  EXPECT_EQ(was_used(), count() > 0) << "only a successful call of CUDA counts as use";
}

TEST_F(StandIns, HaveTheRequestedCount) {
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(why_none(), "");
  EXPECT_EQ(info(1).bytes, 1000U);
  EXPECT_THROW((void)info(2), Error);
  EXPECT_THROW(Stream{2}, Error);
}

TEST_F(StandIns, ExecuteWorkOnlyDuringAWait) {
  Stream stream(0);
  const Values<int> on_gpu(0, 1);
  int in = 5, out = 0;
  copy(stream, on_gpu.data(), &in, sizeof in);
  copy(stream, &out, on_gpu.data(), sizeof out);
  in = 6;
  EXPECT_EQ(out, 0);
  stream.wait();
  EXPECT_EQ(out, 6);
  fill_with_zeros(stream, on_gpu.data(), sizeof(int));
  copy(stream, &out, on_gpu.data(), sizeof out);
  stream.wait();
  EXPECT_EQ(out, 0);
}

TEST_F(StandIns, EventsAreDoneOnceThePrecedingWorkIsDone) {
  Stream stream(0);
  std::array<int, 3> done{};
  Event unrecorded(0), middle(0, Timing::yes), end(0, Timing::yes);
  EXPECT_TRUE(unrecorded.done());
  unrecorded.wait();
  stream.stand_in()->enqueue([&] { done[0] = 1; });
  stream.stand_in()->enqueue([&] { done[1] = 1; });
  middle.record(stream);
  stream.stand_in()->enqueue([&] { done[2] = 1; });
  end.record(stream);
  EXPECT_FALSE(middle.done());
  middle.wait();
  EXPECT_TRUE(middle.done());
  EXPECT_EQ(done, (std::array<int, 3>{1, 1, 0}));
  EXPECT_FALSE(end.done());
  EXPECT_TRUE(end.done()) << "each poll runs one task";
  EXPECT_GE(end.milliseconds_since(middle), 0);
}

TEST_F(StandIns, ElapsedTimeNeedsEventsWithTiming) {
  Stream stream(0);
  Event timed(0, Timing::yes), other(0);
  timed.record(stream);
  other.record(stream);
  EXPECT_DEATH((void)timed.milliseconds_since(other), "Timing::yes");
  EXPECT_DEATH((void)other.milliseconds_since(timed), "Timing::yes");
}

TEST_F(StandIns, KernelsNeedTheSelectedDevice) {
  const Stream first(0), second(1);
  const Values<std::uint32_t> on_gpu(1, 5);
  const IotaBody body{on_gpu.data()};
  EXPECT_DEATH(each<4>(first, body, 5), "selected == device_") << "no device is selected by default";
  {
    const DeviceGuard on_second(second);
    EXPECT_DEATH(each<4>(first, body, 5), "selected == device_");
    {
      const DeviceGuard on_first(first);
      EXPECT_DEATH(each<4>(second, body, 5), "selected == device_");
    }
    each<4>(second, body, 5);
  }
  EXPECT_DEATH(each<4>(second, body, 5), "selected == device_");
  std::array<std::uint32_t, 5> out{};
  copy(second, out.data(), on_gpu.data(), sizeof out);
  second.wait();
  EXPECT_EQ(out, (std::array<std::uint32_t, 5>{0, 1, 2, 3, 4}));
}

TEST_F(StandIns, StreamWaitsForAnEventOfAnotherStream) {
  Stream first(0), second(1);
  int value = 0, seen = 0;
  Event written(0);
  first.stand_in()->enqueue([&] { value = 7; });
  written.record(first);
  second.begin_after(written);
  second.stand_in()->enqueue([&] { seen = value; });
  second.wait();
  EXPECT_EQ(seen, 7);
}

TEST_F(StandIns, FailedWorkFailsEveryWaitAndStopsTheStream) {
  Stream stream(0);
  bool ran = false;
  stream.stand_in()->enqueue([] { throw std::runtime_error("failed work"); });
  stream.stand_in()->enqueue([&] { ran = true; });
  EXPECT_THROW(stream.wait(), std::runtime_error);
  EXPECT_THROW(stream.wait(), std::runtime_error);
  EXPECT_FALSE(ran);
}

TEST_F(StandIns, MemoryIsLimitedAndWaitsForPendingWorkOnRelease) {
  Stream stream(0);
  int out = 0;
  {
    const Memory most(0, 900);
    EXPECT_EQ(info(0).free_bytes, 100U);
    EXPECT_EQ(info(1).free_bytes, 1000U);
    try {
      const Memory more(0, 101);
      ADD_FAILURE() << "allocated more than is free";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::resource_exhausted);
      EXPECT_NE(std::string(error.what()).find("GPU 0 (stand-in"), std::string::npos) << error.what();
    }
    fill_with_zeros(stream, most.data(), 900);
    stream.stand_in()->enqueue([&, from = most.data()] { out = static_cast<int>(from[899]) + 1; });
  }
  EXPECT_EQ(out, 1);
  EXPECT_EQ(info(0).free_bytes, 1000U);
}

TEST_F(StandIns, TryAllocateReturnsNulloptWithoutMemory) {
  std::optional<Memory> most = Memory::try_allocate(0, 900);
  ASSERT_TRUE(most);
  EXPECT_NE(most->data(), nullptr);
  EXPECT_EQ(most->size(), 900U);
  EXPECT_FALSE(Memory::try_allocate(0, 101));
  EXPECT_EQ(info(0).free_bytes, 100U);
  const std::optional<Memory> empty = Memory::try_allocate(0, 0);
  ASSERT_TRUE(empty) << "an empty allocation always succeeds";
  EXPECT_EQ(empty->size(), 0U);
  most.reset();
  EXPECT_TRUE(Memory::try_allocate(0, 1000));
  EXPECT_THROW((void)Memory::try_allocate(2, 1), Error) << "device 2 does not exist";
}

TEST_F(StandIns, PinnedMemoryWaitsForPendingWorkOnRelease) {
  Stream stream(1);
  const Values<int> on_gpu(1, 1);
  int out = 0;
  {
    const PinnedMemory pinned(sizeof(int));
    EXPECT_EQ(pinned.size(), sizeof(int));
    *reinterpret_cast<int*>(pinned.data()) = 5;
    copy(stream, on_gpu.data(), pinned.data(), sizeof(int));
    copy(stream, &out, on_gpu.data(), sizeof(int));
  }
  EXPECT_EQ(out, 5);
}

/// Maps the memory in a forked child, which sets the second byte to 9. Returns the first byte plus 1 as read
/// by the child, or 255 if the child cannot map the memory.
int first_byte_in_child(const std::vector<std::byte>& key) {
  const pid_t child = fork();
  if (child == 0) {
    const MappedMemory mapped(0, key);
    if (mapped.data() == nullptr) _exit(255);
    mapped.data()[1] = std::byte{9};
    _exit(static_cast<int>(mapped.data()[0]) + 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(StandIns, OtherProcessesMapSharedMemoryOnly) {
  Stream stream(0);
  const Memory shared(0, 10, Reach::host);
  const Memory own(0, 10);
  const std::array<std::byte, 2> in{std::byte{41}, std::byte{0}};
  copy(stream, shared.data(), in.data(), in.size());
  copy(stream, own.data(), in.data(), in.size());
  stream.wait();
  EXPECT_EQ(first_byte_in_child(MappedMemory::key(0, shared)), 42);
  EXPECT_EQ(shared.data()[1], std::byte{9});
  EXPECT_EQ(first_byte_in_child(MappedMemory::key(0, own)), 255);
  EXPECT_EQ(info(0).free_bytes, 980U);
}

TEST_F(StandIns, SameProcessMapsItsMemoryOnTheSameGpu) {
  const Memory own(1, 10);
  EXPECT_EQ(MappedMemory(1, MappedMemory::key(1, own)).data(), own.data());
  EXPECT_EQ(MappedMemory(0, MappedMemory::key(1, own)).data(), nullptr);
  EXPECT_EQ(MappedMemory(0, {}).data(), nullptr);
}

TEST_F(StandIns, EmptyMemoryCannotBeMapped) {
  const Memory empty(0, 0, Reach::host);
  EXPECT_EQ(MappedMemory(0, MappedMemory::key(0, empty)).data(), nullptr);
  EXPECT_EQ(first_byte_in_child(MappedMemory::key(0, empty)), 255);
}

TEST_F(StandIns, DetectsEqualProcessIdsInOtherContainers) {
  const Memory shared(0, 10, Reach::host);
  std::vector<std::byte> key = MappedMemory::key(0, shared);
  EXPECT_EQ(MappedMemory(0, key).data(), shared.data());
  key[sizeof(std::int64_t)] ^= std::byte{1};  // the random token follows the process id
  EXPECT_EQ(MappedMemory(0, key).data(), nullptr);
}

}  // namespace
}  // namespace capstan::gpu
