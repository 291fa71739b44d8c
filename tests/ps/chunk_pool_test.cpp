// chunk_pool_test.cpp -- tests that returned chunks are reused and allocations are bounded.
#include "ps/shard/chunk_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

#include "capstan/error.hpp"

namespace capstan::ps {
namespace {

constexpr std::size_t kBytes = ChunkPool::kBytes;

std::vector<ChunkPool::Chunk> take(ChunkPool& pool, int count, std::size_t bytes) {
  std::vector<ChunkPool::Chunk> chunks;
  for (int i = 0; i < count; ++i) {
    chunks.push_back(pool.take(bytes));
    std::memset(chunks.back().get(), i + 1, bytes);
  }
  return chunks;
}

std::set<const std::byte*> locations(const std::vector<ChunkPool::Chunk>& chunks) {
  std::set<const std::byte*> locations;
  for (const auto& chunk : chunks) locations.insert(chunk.get());
  return locations;
}

TEST(ChunkPool, ReusesReturnedChunks) {
  ChunkPool pool;
  auto small = take(pool, 5, kBytes);
  auto large = take(pool, 2, 3 * kBytes);
  const auto before = locations(small), before_large = locations(large);
  EXPECT_EQ(before.size(), 5U);
  pool.give_back(std::move(small), kBytes);
  pool.give_back(std::move(large), 3 * kBytes);
  // Kept alive: the system may give the addresses of freed chunks to new ones.
  const auto small_again = take(pool, 5, kBytes);
  const auto large_again = take(pool, 2, 3 * kBytes);
  EXPECT_EQ(locations(small_again), before);
  EXPECT_EQ(locations(large_again), before_large);
  EXPECT_FALSE(before.contains(pool.take(kBytes).get()));
}

TEST(ChunkPool, RejectsAllocationBeyondFreeMemory) {
  ChunkPool pool;
  try {
    (void)pool.take(std::size_t{1} << 50);
    FAIL() << "a petabyte was allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::resource_exhausted);
  }
}

TEST(ChunkPool, AssignsAChunkToOneThreadAtATime) {
  ChunkPool pool;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&pool, mine = std::byte(i + 1)] {
      for (int round = 0; round < 20; ++round) {
        auto chunks = take(pool, 2, kBytes);
        for (const auto& chunk : chunks) {
          for (std::size_t at = 0; at < kBytes; at += 4096) chunk[at] = mine;
        }
        for (const auto& chunk : chunks) {
          for (std::size_t at = 0; at < kBytes; at += 4096) ASSERT_EQ(chunk[at], mine);
        }
        pool.give_back(std::move(chunks), kBytes);
      }
    });
  }
}

}  // namespace
}  // namespace capstan::ps
