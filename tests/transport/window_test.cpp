// window_test.cpp -- registered memory and windows onto it, mapped and by RMA, on both kinds of fabric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "capstan/error.hpp"
#include "transport/networks.hpp"

namespace capstan::transport {
namespace {

constexpr WindowPath kPaths[] = {WindowPath::automatic, WindowPath::mapped, WindowPath::rma};

/// A region of one fabric, and a peer of another that accesses it. Tests progress the owner in a thread,
/// because UCX emulates RMA over TCP in the owner's progress.
class WindowTest : public NetworkTest {
 protected:
  void SetUp() override {
    owner_ = open(0);
    user_ = open(1);
    region_ = owner_->allocate(kBytes);
    owner_peer_ = &connect(*user_, *owner_, "the owner");
  }
  void TearDown() override {
    owner_.reset();
    user_.reset();
    NetworkTest::TearDown();
  }
  std::unique_ptr<Window> window(WindowPath path) { return owner_peer_->open_window(region_->key(), path); }
  static Deadline soon() { return deadline_in(kTimeout); }
  std::uint64_t word(std::uint64_t offset) {
    return std::atomic_ref<std::uint64_t>(
               *reinterpret_cast<std::uint64_t*>(region_->memory().data() + offset))
        .load(std::memory_order_acquire);
  }

  static constexpr std::size_t kBytes = std::size_t{4} << 20;
  std::shared_ptr<Fabric> owner_;
  std::shared_ptr<Fabric> user_;
  std::unique_ptr<Region> region_;
  Peer* owner_peer_ = nullptr;
};

TEST_P(WindowTest, RegionIsZeroedAndPageAligned) {
  EXPECT_EQ(region_->memory().size(), kBytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region_->memory().data()) % 4096, 0U);
  for (const std::byte b : region_->memory()) ASSERT_EQ(b, std::byte{0});
  EXPECT_EQ(region_->key().length, kBytes);
}

TEST_P(WindowTest, MapsMemoryOnOneHostUnlessRmaIsRequested) {
  EXPECT_NE(window(WindowPath::automatic)->mapped(), nullptr);
  EXPECT_NE(window(WindowPath::mapped)->mapped(), nullptr);
  EXPECT_EQ(window(WindowPath::rma)->mapped(), nullptr);
  EXPECT_EQ(window(WindowPath::rma)->length(), kBytes);
  EXPECT_FALSE(owner_peer_->transports().empty());
}

TEST_P(WindowTest, OwnerSeesAMappedStore) {
  const auto w = window(WindowPath::mapped);
  w->mapped()[12345] = std::byte{7};
  EXPECT_EQ(region_->memory()[12345], std::byte{7});
  region_->memory()[54321] = std::byte{9};
  EXPECT_EQ(w->mapped()[54321], std::byte{9});
}

TEST_P(WindowTest, GetReturnsTheBytesOfAPut) {
  for (const WindowPath path : kPaths) {
    const auto w = window(path);
    std::uint64_t offset = 0;
    unsigned seed = static_cast<unsigned>(path) + 1;
    for (const std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{8}, std::size_t{100},
                                   std::size_t{4096}, std::size_t{1} << 20}) {
      auto data = pattern(size, ++seed);
      const auto copy = data;
      std::vector<std::byte> back(size);
      {
        const Progressing owner(*owner_);
        w->put(offset, data);
        std::fill(data.begin(), data.end(), std::byte{0});  // put() no longer needs it
        w->flush(soon());
        w->get(offset, back, soon());
      }
      EXPECT_EQ(back, copy);
      const auto there = region_->memory().subspan(offset, size);
      EXPECT_TRUE(std::equal(there.begin(), there.end(), copy.begin())) << size << " bytes at " << offset;
      offset += size;  // all offsets after the first are odd
    }
  }
}

TEST_P(WindowTest, OneGetReadsTheCompleteWindow) {
  const auto data = pattern(kBytes, 77);
  std::copy(data.begin(), data.end(), region_->memory().begin());
  for (const WindowPath path : kPaths) {
    const auto w = window(path);
    std::vector<std::byte> back(kBytes);
    const Progressing owner(*owner_);
    w->get(0, back, soon());
    EXPECT_EQ(back, data);
  }
}

TEST_P(WindowTest, AcceptsAnAccessOfNoBytesAtTheEndAndChangesNothing) {
  const auto before = pattern(kBytes, 5);
  std::copy(before.begin(), before.end(), region_->memory().begin());
  for (const WindowPath path : kPaths) {
    const auto w = window(path);
    const Progressing owner(*owner_);
    EXPECT_NO_THROW(w->put(kBytes, {}));
    EXPECT_NO_THROW(w->get(kBytes, {}, soon()));
    EXPECT_NO_THROW(w->flush(soon()));
    const auto after = region_->memory();
    EXPECT_TRUE(std::equal(after.begin(), after.end(), before.begin(), before.end()));
  }
}

TEST_P(WindowTest, FenceOrdersPuts) {
  for (const WindowPath path : kPaths) {
    std::memset(region_->memory().data(), 0, 128 << 10);
    const auto w = window(path);
    constexpr std::uint64_t kRounds = 50;
    constexpr std::size_t kBlock = 40000;
    std::jthread writer([&] {
      for (std::uint64_t round = 1; round <= kRounds; ++round) {
        w->put(4096, pattern(kBlock, static_cast<unsigned>(round)));
        w->fence();
        w->put(0, value_bytes(round));
        // Writes the block again only once the reader has seen the word.
        spin_until(*user_, [&] { return word(64) == round; });
      }
    });
    bool complete = true;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      ASSERT_TRUE(spin_until(*owner_, [&] { return word(0) == round; }));
      const auto expected = pattern(kBlock, static_cast<unsigned>(round));
      complete &= std::equal(expected.begin(), expected.end(), region_->memory().begin() + 4096);
      std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(region_->memory().data() + 64))
          .store(round, std::memory_order_release);
    }
    EXPECT_TRUE(complete);
  }
}

TEST_P(WindowTest, MappedWindowOutlivesItsRegion) {
  const auto w = window(WindowPath::mapped);
  region_->memory()[5] = std::byte{55};
  region_.reset();
  EXPECT_EQ(w->mapped()[5], std::byte{55});
}

using WindowDeathTest = WindowTest;

TEST_P(WindowDeathTest, AccessOutsideOfTheWindowAborts) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const WindowPath path : {WindowPath::mapped, WindowPath::rma}) {
    const auto w = window(path);
    std::vector<std::byte> bytes(16);
    EXPECT_DEATH(w->put(kBytes - 15, bytes), "assertion failed");
    EXPECT_DEATH(w->get(kBytes + 1, bytes, soon()), "assertion failed");
  }
  const auto w = window(WindowPath::mapped);
  std::vector<std::byte> bytes(16);
  EXPECT_DEATH(w->get(std::uint64_t(-8), bytes, soon()), "assertion failed");
}

CAPSTAN_ON_BOTH_NETWORKS(WindowTest);
CAPSTAN_ON_BOTH_NETWORKS(WindowDeathTest);

}  // namespace
}  // namespace capstan::transport
