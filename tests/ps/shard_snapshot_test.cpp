// shard_snapshot_test.cpp -- tests that a snapshot is consistent while rows change.
#include "ps/shard/shard_snapshot.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "io/hdf5/checkpoint_types.hpp"
#include "ps/durability/store_snapshot.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {
namespace {

std::vector<std::byte> random_bytes(std::size_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Copies the rows of both arrays in pieces; random rows change between two pieces.
void expect_original_rows(std::uint64_t rows, std::uint64_t piece, unsigned seed, bool memory_freed) {
  SCOPED_TRACE(std::to_string(rows) + " rows, pieces of " + std::to_string(piece) + ", seed " +
               std::to_string(seed));
  std::mt19937 random(seed);
  const std::uint64_t row_bytes[] = {12, 4};
  std::vector<std::byte> live[] = {random_bytes(rows * 12, random), random_bytes(rows * 4, random)};
  const std::vector<std::byte> before[] = {live[0], live[1]};
  const ShardSnapshot::Array arrays[] = {{live[0].data(), 12}, {live[1].data(), 4}};
  ShardSnapshot snapshot(arrays, rows);
  std::mutex mutex;
  const auto change = [&] {
    if (random() % 4 == 0) {
      const std::uint64_t first = random() % rows;
      const std::uint64_t count = std::min<std::uint64_t>(rows - first, random() % 3000);
      snapshot.preserve(first, count);
      for (int array = 0; array < 2; ++array)
        std::memset(live[array].data() + first * row_bytes[array], 7, count * row_bytes[array]);
      return;
    }
    std::vector<std::uint32_t> some(random() % 50);
    for (std::uint32_t& row : some) row = static_cast<std::uint32_t>(random() % rows);
    snapshot.preserve(some);
    for (const std::uint32_t row : some) {
      for (int array = 0; array < 2; ++array)
        std::memset(live[array].data() + row * row_bytes[array], 9, row_bytes[array]);
    }
  };
  for (std::size_t array = 0; array < 2; ++array) {
    std::vector<std::byte> copy(before[array].size());
    for (std::uint64_t first = 0; first < rows; first += piece) {
      change();
      const std::uint64_t count = std::min(piece, rows - first);
      snapshot.copy(array, first, count, copy.data() + first * row_bytes[array], mutex);
    }
    EXPECT_EQ(copy, before[array]) << "array " << array;
    if (memory_freed && array == 0) {
      snapshot.preserve_all();
      for (auto& bytes : live) bytes.assign(bytes.size(), std::byte{3});
    }
  }
}

TEST(ShardSnapshot, PreservesRowsThatChangeBetweenCopies) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    expect_original_rows(1, 1, seed, false);
    expect_original_rows(1024, 1024, seed, false);
    expect_original_rows(5000, 700, seed, false);
    expect_original_rows(5000, 4096, seed, seed % 2 == 0);
  }
}

TEST(ShardSnapshot, PreservesListedRows) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    constexpr std::uint64_t kRows = 3000, kBytes = 12;
    std::vector<std::byte> live = random_bytes(kRows * kBytes, random);
    const std::vector<std::byte> before = live;
    TouchedRows touched(1, kRows);
    for (std::uint32_t row = 0; row < kRows; ++row) {
      if (random() % 10 < seed % 11) touched.add(row, 1);
    }
    const std::vector<std::uint32_t> listed = touched.list();
    const ShardSnapshot::Array array{live.data(), kBytes};
    ShardSnapshot snapshot({&array, 1}, kRows, touched);
    std::mutex mutex;
    snapshot.preserve(5, 20);
    std::memset(live.data() + 5 * kBytes, 8, 20 * kBytes);
    snapshot.list_rows();
    ASSERT_EQ(snapshot.rows(), listed.size());
    std::vector<std::byte> copy(listed.size() * kBytes);
    for (std::uint64_t first = 0; first < listed.size(); first += 100) {
      std::vector<std::uint32_t> some(random() % 500);
      for (std::uint32_t& row : some) row = static_cast<std::uint32_t>(random() % kRows);
      snapshot.preserve(some);
      for (const std::uint32_t row : some) std::memset(live.data() + row * kBytes, 9, kBytes);
      if (seed % 5 == 0 && first == 500) {
        snapshot.preserve_all();
        live.assign(live.size(), std::byte{3});
      }
      snapshot.copy(0, first, std::min<std::uint64_t>(100, listed.size() - first),
                    copy.data() + first * kBytes, mutex);
    }
    for (std::size_t i = 0; i < listed.size(); ++i)
      EXPECT_EQ(std::memcmp(copy.data() + i * kBytes, before.data() + listed[i] * kBytes, kBytes), 0) << i;
  }
}

/// Changes random rows in another thread during the copy; optionally frees their memory at the end.
void expect_original_rows_beside_a_writer(unsigned seed, bool listed, bool memory_freed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + (listed ? ", listed" : "") +
               (memory_freed ? ", memory freed" : ""));
  constexpr std::uint64_t kRows = 60'000, kBytes = 24, kPiece = 5000;
  std::mt19937 random(seed);
  auto live = std::make_unique<std::vector<std::byte>>(random_bytes(kRows * kBytes, random));
  const std::vector<std::byte> before = *live;
  TouchedRows touched(1, kRows);
  for (std::uint32_t row = 0; row < kRows; row += 2) touched.add(row, 1);
  const ShardSnapshot::Array array{live->data(), kBytes};
  ShardSnapshot snapshot({&array, 1}, kRows, listed ? std::optional(touched) : std::nullopt);
  std::mutex mutex;
  std::atomic<std::uint64_t> changed = 0;
  std::jthread writer([&](const std::stop_token& stop) {
    std::mt19937 rows_of(seed + 1);
    while (!stop.stop_requested()) {
      std::vector<std::uint32_t> some(64);
      for (std::uint32_t& row : some) row = static_cast<std::uint32_t>(rows_of() % kRows);
      const std::lock_guard lock(mutex);
      snapshot.preserve(some);
      for (const std::uint32_t row : some) std::memset(live->data() + row * kBytes, 7, kBytes);
      changed += some.size();
      if (!memory_freed || changed < kRows / 4) continue;
      snapshot.preserve_all();
      live.reset();
      return;
    }
  });
  snapshot.list_rows();
  std::vector<std::byte> copy(snapshot.rows() * kBytes);
  for (std::uint64_t first = 0; first < snapshot.rows(); first += kPiece) {
    const std::uint64_t seen = changed;
    snapshot.copy(0, first, std::min(kPiece, snapshot.rows() - first), copy.data() + first * kBytes, mutex);
    while (changed < seen + 64 && !(memory_freed && changed >= kRows / 4)) std::this_thread::yield();
  }
  writer = {};
  for (std::uint64_t i = 0; i < snapshot.rows(); ++i)
    ASSERT_EQ(std::memcmp(&copy[i * kBytes], &before[snapshot.row(i) * kBytes], kBytes), 0) << "row " << i;
}

TEST(ShardSnapshot, PreservesRowsThatAnotherThreadChanges) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    for (const bool listed : {false, true}) {
      for (const bool memory_freed : {false, true})
        expect_original_rows_beside_a_writer(seed, listed, memory_freed);
    }
  }
}

class Snapshots : public testing::Test {
 protected:
  Snapshots() { store_.create({1, 0, "w", DType::float32, {kRows, 2}, 0, kRows, optimizers::Adagrad{}, {}}); }
  void push(float value, bool first_part = true, bool last_part = true) {
    const std::vector<float> gradient(kRows * 2, value);
    apply_entry(store_, push_entry<float>(1, 0, {}, 0, 2, gradient, first_part, last_part));
  }
  std::vector<float> now(const char* component = io::kValue) {
    StoreSnapshot snapshot(store_);
    EXPECT_TRUE(snapshot.advance());
    return read(snapshot, component);
  }
  static std::vector<float> read(StoreSnapshot& snapshot, const char* component = io::kValue) {
    const auto parts = snapshot.parts(1);
    for (const io::PartArray& array : parts.at(0)) {
      if (array.component != component) continue;
      std::vector<float> values(kRows * 2);
      array.read(0, kRows, reinterpret_cast<std::byte*>(values.data()));
      return values;
    }
    ADD_FAILURE() << "no " << component;
    return {};
  }

  static constexpr std::uint64_t kRows = 3000;
  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_ = hub_.open();
  Store store_{*fabric_, 1 << 20, 0};
};

TEST_F(Snapshots, ExcludeLaterPushes) {
  push(1);
  const auto values = now();
  const auto slots = now("accumulator");
  StoreSnapshot snapshot(store_);
  ASSERT_TRUE(snapshot.advance());
  push(2);
  EXPECT_NE(now(), values);
  EXPECT_EQ(read(snapshot), values);
  EXPECT_EQ(read(snapshot, "accumulator"), slots);
  EXPECT_EQ(snapshot.parts(1).at(0).at(0).steps, 1);
}

TEST_F(Snapshots, AreIndependentOfEachOther) {
  const auto first_values = now();
  StoreSnapshot first(store_);
  push(1);
  const auto second_values = now();
  StoreSnapshot second(store_);
  push(2);
  EXPECT_EQ(read(second), second_values);
  EXPECT_EQ(read(first), first_values);
}

TEST_F(Snapshots, FreezeAShardOnceItIsConsistent) {
  push(1, true, false);
  StoreSnapshot snapshot(store_);
  EXPECT_FALSE(snapshot.advance());
  protocol::PushHeader another;
  another.kind = protocol::PushKind::dense;
  another.variable = 1;
  EXPECT_FALSE(store_.ready(another)) << "otherwise the shard might never become consistent";
  push(2, false, true);
  const auto values = now();
  EXPECT_TRUE(snapshot.advance());
  EXPECT_TRUE(store_.ready(another));
  push(3);
  EXPECT_EQ(read(snapshot), values);
}

TEST_F(Snapshots, ReleaseWaitingPushesWhenDestroyedEarly) {
  push(1, true, false);
  { const StoreSnapshot snapshot(store_); }
  protocol::PushHeader another;
  another.kind = protocol::PushKind::dense;
  another.variable = 1;
  EXPECT_TRUE(store_.ready(another));
}

TEST_F(Snapshots, IncludeAVariableDroppedLater) {
  push(1);
  const auto values = now();
  StoreSnapshot snapshot(store_);
  store_.drop(1);
  store_.create({2, 0, "other", DType::float32, {kRows, 2}, 0, kRows, optimizers::Adagrad{}, {}});
  EXPECT_EQ(read(snapshot), values);
}

}  // namespace
}  // namespace capstan::ps
