// store_checkpoint_test.cpp -- tests that M ps restore the shards, slots and steps that N ps saved.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/part_writer.hpp"
#include "io/temporary_directory.hpp"
#include "protocol/partition.hpp"
#include "ps/durability/store_restore.hpp"
#include "ps/durability/store_snapshot.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {
namespace {

constexpr std::uint64_t kTableRows = 11;
constexpr std::uint64_t kTableWidth = 3;

/// Stores of several ps, with four variables that have one shard on each ps.
class Job {
 public:
  explicit Job(std::uint64_t ps) : partition_(kTableRows, ps) {
    for (std::uint64_t i = 0; i < ps; ++i) {
      fabrics_.push_back(hub_.open());
      stores_.push_back(std::make_unique<Store>(*fabrics_.back(), 1 << 20, static_cast<int>(i)));
      const auto shard = static_cast<std::uint32_t>(i);
      stores_[i]->create({1,
                          shard,
                          "w",
                          DType::float32,
                          {kTableRows, kTableWidth},
                          partition_.first_row_of(i),
                          partition_.rows_of(i),
                          optimizers::Adam{.learning_rate = 0.1},
                          initializers::normal(0, 1, 4)});
      stores_[i]->create({2,
                          shard,
                          "group/count",
                          DType::int64,
                          {kTableRows},
                          partition_.first_row_of(i),
                          partition_.rows_of(i),
                          optimizers::SGD{.learning_rate = -1},
                          {}});
      stores_[i]->create({3,
                          shard,
                          "sparse",
                          DType::float32,
                          {kTableRows, kTableWidth},
                          partition_.first_row_of(i),
                          partition_.rows_of(i),
                          optimizers::FTRL{.learning_rate = 0.1, .initial_accumulator = 0.5, .l1 = 0.25},
                          initializers::normal(0, 1, 5)});
      protocol::CreateShard int8{4,
                                 shard,
                                 "int8",
                                 DType::float32,
                                 {kTableRows, kTableWidth},
                                 partition_.first_row_of(i),
                                 partition_.rows_of(i),
                                 optimizers::Adagrad{.learning_rate = 0.1},
                                 initializers::normal(0, 1, 6)};
      int8.storage = {.int8 = true};
      stores_[i]->create(int8);
    }
  }
  void push(float scale) {
    for (std::uint64_t i = 0; i < stores_.size(); ++i) {
      std::vector<float> gradient(partition_.rows_of(i) * kTableWidth);
      std::iota(gradient.begin(), gradient.end(),
                static_cast<float>(partition_.first_row_of(i) * kTableWidth));
      for (float& g : gradient) g *= scale;
      const auto shard = static_cast<std::uint32_t>(i);
      apply_entry(*stores_[i], push_entry<float>(1, shard, {}, 0, kTableWidth, gradient));
      apply_entry(*stores_[i], push_entry<float>(3, shard, {}, 0, kTableWidth, gradient));
      apply_entry(*stores_[i], push_entry<float>(4, shard, {}, 0, kTableWidth, gradient));
      std::vector<std::int64_t> counts(partition_.rows_of(i));
      std::iota(counts.begin(), counts.end(), static_cast<std::int64_t>(partition_.first_row_of(i)));
      apply_entry(*stores_[i], push_entry<std::int64_t>(2, shard, {}, 0, 1, counts));
    }
  }
  template <class T>
  std::vector<T> values(std::uint32_t variable) {
    std::vector<T> out;
    for (std::uint64_t i = 0; i < stores_.size(); ++i) {
      std::vector<std::uint32_t> rows(partition_.rows_of(i));
      std::iota(rows.begin(), rows.end(), 0U);
      const auto view = stores_[i]->view(variable, static_cast<std::uint32_t>(i));
      std::vector<T> values(rows.size() * view.row_bytes / sizeof(T));
      stores_[i]->gather(view, rows, reinterpret_cast<std::byte*>(values.data()));
      out.insert(out.end(), values.begin(), values.end());
    }
    return out;
  }
  void set_learning_rate(double rate) {
    for (std::uint64_t i = 0; i < stores_.size(); ++i)
      apply_entry(*stores_[i], rate_entry(1, static_cast<std::uint32_t>(i), rate));
  }
  std::filesystem::path save(const std::filesystem::path& folder) {
    io::CheckpointDirectory directory(folder);
    const auto temporary = directory.begin(1);
    std::vector<io::PartReport> parts;
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      StoreSnapshot snapshot(*stores_[i]);
      EXPECT_TRUE(snapshot.advance());
      const std::string name = io::part_file_name(static_cast<int>(i), static_cast<int>(stores_.size()));
      parts.push_back(io::write_part(temporary / name, snapshot.parts(1).at(0)));
    }
    return directory.publish(1, parts);
  }
  Store& store(std::size_t i) { return *stores_[i]; }
  void restore(const std::filesystem::path& checkpoint) {
    for (const auto& store : stores_) restore_checkpoint(*store, checkpoint.string());
  }

 private:
  transport::LoopHub hub_;
  protocol::DivPartition partition_;
  std::vector<std::unique_ptr<transport::Fabric>> fabrics_;
  std::vector<std::unique_ptr<Store>> stores_;
};

TEST(StoreCheckpoint, RestoresWithAnotherNumberOfPs) {
  for (const std::uint64_t writers : {1, 2, 3, 5}) {
    for (const std::uint64_t readers : {1, 2, 4}) {
      SCOPED_TRACE(std::to_string(writers) + " ps wrote, " + std::to_string(readers) + " read");
      const io::TemporaryDirectory folder;
      Job first(writers);
      first.push(1);
      first.push(-2);
      const auto checkpoint = first.save(folder.path());
      Job second(readers);
      second.push(7);  // overwritten by the restore
      second.restore(checkpoint);
      EXPECT_EQ(second.values<float>(1), first.values<float>(1));
      EXPECT_EQ(second.values<std::int64_t>(2), first.values<std::int64_t>(2));
      EXPECT_EQ(second.values<float>(3), first.values<float>(3));
      EXPECT_EQ(second.values<float>(4), first.values<float>(4));
      // The next update depends on Adam's moments and step count, and on both slots of FTRL.
      first.push(3);
      second.push(3);
      EXPECT_EQ(second.values<float>(1), first.values<float>(1));
      EXPECT_EQ(second.values<float>(3), first.values<float>(3));
      EXPECT_EQ(second.values<float>(4), first.values<float>(4));
      EXPECT_EQ(second.values<std::int64_t>(2), first.values<std::int64_t>(2));
    }
  }
}

TEST(StoreCheckpoint, RestoresALearningRateOverride) {
  for (const std::uint64_t readers : {1, 2, 3}) {
    SCOPED_TRACE(readers);
    const io::TemporaryDirectory folder;
    Job first(2);
    first.push(1);
    first.set_learning_rate(0.01);
    const auto checkpoint = first.save(folder.path());
    Job second(readers);
    second.restore(checkpoint);
    first.push(3);
    second.push(3);
    EXPECT_EQ(second.values<float>(1), first.values<float>(1));
  }
}

TEST(StoreCheckpoint, RestoreWithoutAnOverrideResetsTheLearningRate) {
  const io::TemporaryDirectory folder;
  Job first(2);
  first.push(1);
  const auto checkpoint = first.save(folder.path());
  Job second(2);
  second.set_learning_rate(0.01);
  second.restore(checkpoint);
  first.push(3);
  second.push(3);
  EXPECT_EQ(second.values<float>(1), first.values<float>(1));
}

TEST(StoreCheckpoint, AcceptsPushesAfterASave) {
  const io::TemporaryDirectory folder;
  Job saved(2);
  Job plain(2);
  saved.push(1);
  plain.push(1);
  (void)saved.save(folder.path());
  saved.push(2);
  plain.push(2);
  EXPECT_EQ(saved.values<float>(1), plain.values<float>(1));
}

}  // namespace
}  // namespace capstan::ps
