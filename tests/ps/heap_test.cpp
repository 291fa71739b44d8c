// heap_test.cpp -- tests that pieces of registered memory do not overlap and can be accessed by windows.
#include "ps/shard/heap.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "capstan/error.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {
namespace {

constexpr std::uint64_t kHeapSlab = 1 << 20;

class HeapTest : public testing::Test {
 protected:
  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_ = hub_.open();
  Heap heap_{*fabric_, kHeapSlab};
};

TEST_F(HeapTest, PiecesAreAlignedZeroedAndDoNotOverlap) {
  std::vector<std::pair<Piece, std::uint64_t>> pieces;
  for (const std::uint64_t bytes :
       {1, 4096, 4097, 100000, 524288, 524289, 3000000, 7, 400000, 400000, 400000}) {
    pieces.emplace_back(heap_.allocate(bytes), bytes);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto& [piece, bytes] = pieces[i];
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.data) % 4096, 0U);
    for (std::uint64_t b = 0; b < bytes; ++b) ASSERT_EQ(piece.data[b], std::byte{0}) << "piece " << i;
    std::memset(piece.data, static_cast<int>(i + 1), bytes);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::uint64_t b = 0; b < pieces[i].second; ++b) {
      ASSERT_EQ(pieces[i].first.data[b], static_cast<std::byte>(i + 1)) << "piece " << i;
    }
  }
}

TEST_F(HeapTest, SmallPiecesShareASlabAndLargePiecesHaveTheirOwnRegion) {
  EXPECT_EQ(heap_.bytes(), 0U);
  const Piece a = heap_.allocate(100);
  const Piece b = heap_.allocate(100);
  EXPECT_EQ(heap_.bytes(), kHeapSlab);
  EXPECT_EQ(a.region, b.region);
  EXPECT_NE(a.offset, b.offset);
  const Piece large = heap_.allocate(3 * kHeapSlab);
  EXPECT_NE(large.region, a.region);
  EXPECT_EQ(large.offset, 0U);
  EXPECT_EQ(heap_.bytes(), 4 * kHeapSlab);
  // The open slab is still used.
  EXPECT_EQ(heap_.allocate(100).region, a.region);
  EXPECT_EQ(heap_.bytes(), 4 * kHeapSlab);
}

TEST_F(HeapTest, RollsBackToAMark) {
  const Piece first = heap_.allocate(100);
  const Heap::Mark mark = heap_.mark();
  const std::uint64_t bytes = heap_.bytes();
  const Piece second = heap_.allocate(100);
  std::memset(second.data, 7, 100);
  (void)heap_.allocate(3 * kHeapSlab);
  for (int i = 0; i < 4; ++i) (void)heap_.allocate(kHeapSlab / 2);  // a further slab
  heap_.roll_back(mark);
  EXPECT_EQ(heap_.mark(), mark);
  EXPECT_EQ(heap_.bytes(), bytes);
  const Piece again = heap_.allocate(100);
  EXPECT_EQ(again.data, second.data);
  EXPECT_EQ(again.data[0], std::byte{0}) << "a new piece must be zeroed";
  EXPECT_EQ(again.region, first.region);
}

TEST_F(HeapTest, OpensAWindowToAPiece) {
  const Piece first = heap_.allocate(5000);
  const Piece piece = heap_.allocate(5000);
  const auto client = hub_.open();
  auto& peer = client->connect(0, "ps", fabric_->address());
  const auto window = peer.open_window(heap_.key(piece.region), transport::WindowPath::automatic);
  ASSERT_NE(window->mapped(), nullptr);
  piece.data[17] = std::byte{99};
  EXPECT_EQ(window->mapped()[piece.offset + 17], std::byte{99});
  EXPECT_EQ(window->mapped()[first.offset + 17], std::byte{0});
}

TEST_F(HeapTest, RejectsAnUnknownRegion) {
  (void)heap_.allocate(1);
  EXPECT_NO_THROW((void)heap_.key(0));
  EXPECT_THROW((void)heap_.key(1), Error);
}

}  // namespace
}  // namespace capstan::ps
