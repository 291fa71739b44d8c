// table_model_test.cpp -- random operations on a shard of a dynamic table, checked with a map after each.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/part_writer.hpp"
#include "io/temporary_directory.hpp"
#include "ps/durability/store_restore.hpp"
#include "ps/durability/store_snapshot.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "ps/shard_contents.hpp"
#include "ps/store_process.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {
namespace {

using protocol::RowOp;

constexpr std::size_t kModelWidth = 2;
constexpr double kInitial = 0.5;
constexpr std::size_t kMaxKeysOfEntry = 4096;
constexpr std::uint64_t kModelKeys = 6000;  // number of keys that entries use

/// Values and velocities of a key, for which all arithmetic is exact: both parameters of Momentum are 1.
struct ModelRow {
  std::array<double, kModelWidth> values{kInitial, kInitial};
  std::array<double, kModelWidth> velocities{};
  bool operator==(const ModelRow&) const = default;

  void apply(RowOp op, const double* operand) {
    for (std::size_t i = 0; i < kModelWidth && op != RowOp::insert; ++i) {
      if (op == RowOp::gradient) velocities[i] += operand[i];
      if (op == RowOp::set) {
        values[i] = operand[i];
      } else {
        values[i] += op == RowOp::gradient ? velocities[i] : operand[i];
      }
    }
  }
};
using Model = std::unordered_map<std::int64_t, ModelRow>;

struct ModelEntry {
  RowOp op = RowOp::gradient;
  std::vector<std::int64_t> keys;
  std::vector<double> values;
  std::uint32_t call = 0;

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out = keyed_entry(1, keys, values, op);
    protocol::PushHeader header;
    std::memcpy(&header, out.data(), sizeof header);
    header.call = call;
    header.rank = 1;
    std::memcpy(out.data(), &header, sizeof header);
    return out;
  }
};

struct Policy {
  std::string name;
  protocol::TablePolicy policy;
  std::uint64_t rows;

  bool evicts() const { return policy.evicts(); }
  /// If no key is forgotten twice, the number of occurrences of a key that is not added is limited.
  bool forgets_once() const { return rows > 500'000; }
};

Policy evicting(const std::string& name, protocol::TablePolicy policy) {
  return {name, policy, 1500 + 1 + protocol::kSpareRows};
}

std::vector<Policy> policies() {
  return {{"all_keys_fit", {}, 100'000},
          {"refuse", {}, 2001},
          evicting("least_recent", {.when_full = WhenFull::evict_least_recent}),
          evicting("least_frequent", {.when_full = WhenFull::evict_least_frequent}),
          {"by_age", {.evict_after = 40}, 100'000},
          {"admit_after", {.admit_after = 3}, 1 << 20},
          evicting("admit_after_and_evict", {.when_full = WhenFull::evict_least_recent, .admit_after = 2}),
          {"admit_probability", {.admit_probability = 0.3}, 100'000}};
}

protocol::CreateShard table_of(const Policy& policy) {
  protocol::CreateShard request;
  request.variable = 1;
  request.name = "user";
  request.dtype = DType::float64;
  request.shape = {policy.rows, kModelWidth};
  request.rows = policy.rows;
  request.optimizer = optimizers::Momentum{.learning_rate = -1, .momentum = 1};
  request.initializer = initializers::constant(kInitial);
  request.table = true;
  request.policy = policy.policy;
  return request;
}

Model contents_of(Store& store) {
  const auto shards = shard_contents(store);
  const ShardContents& table = shards.at("user/part_0");
  Model out;
  out.reserve(table.rows);
  table.for_each_key([&](std::int64_t key, std::uint64_t row) {
    ModelRow& to = out[key];
    to.values = table.at<std::array<double, kModelWidth>>(0, row);
    to.velocities = table.at<std::array<double, kModelWidth>>(1, row);
  });
  return out;
}

/// Applies entries to a shard and compares its keys, values and velocities with a map.
///
/// A model cannot tell which keys the shard evicts or admits. It accepts those decisions where the policy
/// allows them, and compares their numbers with the statistics.
class CheckedTable {
 public:
  explicit CheckedTable(Policy policy) : policy_(std::move(policy)) { begin(); }

  Store& store() { return process_->store(); }
  void apply(const ModelEntry& entry) {
    const auto before = store().table_statistics({1, 0});
    process_->apply(entry.bytes(), true);
    if (entry.op == RowOp::erase) {
      std::uint64_t erased = 0;
      for (const std::int64_t key : entry.keys) erased += rows_.erase(key);
      EXPECT_EQ(store().table_statistics({1, 0}).erased - before.erased, erased);
      EXPECT_TRUE(contents_of(store()) == rows_);
    } else {
      check(entry, before);
    }
    EXPECT_EQ(store().table_statistics({1, 0}).keys, rows_.size());
  }
  /// Erases the keys whose first value a condition selects, as DynamicTable::erase_if does.
  void erase_below(double limit) {
    ModelEntry entry;
    entry.op = RowOp::erase;
    for (const std::int64_t key : store().list_keys({1, 0, 0, policy_.rows}).keys) {
      double row[kModelWidth];
      store().gather_keys(store().view(1, 0), {{key}}, MissingKeys::error, reinterpret_cast<std::byte*>(row));
      if (row[0] < limit) entry.keys.push_back(key);
    }
    std::size_t expected = 0;
    for (const auto& [key, row] : rows_) expected += row.values[0] < limit ? 1 : 0;
    EXPECT_EQ(entry.keys.size(), expected);
    apply(entry);
  }
  /// Replaces the process by one that adopts its memory. The entry was not committed, so it has no effect.
  void restart_during(const ModelEntry& entry) {
    process_->apply(entry.bytes(), false);
    for (const std::int64_t key : entry.keys) {
      if (entry.op == RowOp::gradient && !rows_.contains(key)) ++seen_[key];
    }
    process_.emplace(memory_);
    process_->store().recover();
    EXPECT_TRUE(contents_of(store()) == rows_);
  }
  /// Saves the shard, applies an entry, and restores the shard, in a new process with new memory or in place.
  void save_and_restore(const ModelEntry& discarded, bool in_place) {
    const io::TemporaryDirectory directory;
    io::CheckpointDirectory to(directory.path());
    std::vector<io::PartReport> parts;
    {
      StoreSnapshot snapshot(store());
      EXPECT_TRUE(snapshot.advance());
      parts.push_back(io::write_part(to.begin(1) / io::part_file_name(0, 1), snapshot.parts(1).at(0)));
    }
    const auto checkpoint = to.publish(1, parts);
    const Model saved = rows_;
    apply(discarded);
    if (!in_place) begin();
    restore_checkpoint(store(), checkpoint.string());
    rows_ = saved;
    seen_.clear();  // a checkpoint does not have the admission filter
    EXPECT_TRUE(contents_of(store()) == rows_);
  }
  std::uint64_t early() const { return early_; }
  std::uint64_t admitted() const { return admitted_; }

 private:
  void begin() {
    process_.reset();
    memory_ = transport::PersistentMemory::create();
    process_.emplace(memory_);
    process_->store().create(table_of(policy_));
  }

  void check(const ModelEntry& entry, const protocol::TableStatistics& before) {
    const Model now = contents_of(store());
    const auto after = store().table_statistics({1, 0});
    Model kept, fresh;  // rows of the keys of the entry if they were not evicted, and if they were added
    std::unordered_map<std::int64_t, std::uint32_t> occurrences;
    for (std::size_t i = 0; i < entry.keys.size(); ++i) {
      const std::int64_t key = entry.keys[i];
      const double* const operand = entry.values.data() + i * kModelWidth;
      ++occurrences[key];
      fresh[key].apply(entry.op, operand);
      if (const auto row = rows_.find(key); row != rows_.end())
        kept.try_emplace(key, row->second).first->second.apply(entry.op, operand);
    }
    std::uint64_t added = 0, evicted = 0, unsure = 0, absent = 0;
    for (const auto& [key, row] : fresh) {
      const auto found = now.find(key);
      const auto existed = kept.find(key);
      if (found != now.end() && existed != kept.end() && found->second == existed->second) {
        if (row == existed->second) ++unsure;  // it may have been evicted and added again
        continue;
      }
      if (existed != kept.end()) ++evicted;
      if (found == now.end()) {
        absent += occurrences[key];
      } else {
        ++added;
        EXPECT_TRUE(found->second == row) << "key " << key;
      }
      if (entry.op == RowOp::gradient) check_admission(key, occurrences[key], found != now.end());
    }
    for (const auto& [key, row] : rows_) {
      if (fresh.contains(key)) continue;
      const auto found = now.find(key);
      if (found == now.end()) {
        ++evicted;
      } else {
        EXPECT_TRUE(found->second == row) << "key " << key;
      }
    }
    for (const auto& [key, row] : now)
      EXPECT_TRUE(rows_.contains(key) || fresh.contains(key)) << "key " << key;

    EXPECT_GE(after.inserted - before.inserted, added);
    EXPECT_LE(after.inserted - before.inserted, added + unsure);
    EXPECT_GE(after.evicted - before.evicted, evicted);
    EXPECT_LE(after.evicted - before.evicted, evicted + unsure);
    if (!policy_.evicts()) {
      EXPECT_EQ(evicted, 0U);
    }
    const std::uint64_t refused = after.refused - before.refused;
    if (!policy_.policy.has_admission() || entry.op != RowOp::gradient) {
      EXPECT_EQ(refused, absent);
    }
    if (refused != 0) {
      EXPECT_EQ(now.size(), after.most_keys) << "only a full table refuses keys";
    }
    if (policy_.policy.when_full != WhenFull::refuse) {
      EXPECT_EQ(refused, 0U);
      EXPECT_LE(now.size(), after.most_keys + kMaxKeysOfEntry);
    }
    rows_ = now;
  }
  void check_admission(std::int64_t key, std::uint32_t occurrences, bool found) {
    if (policy_.policy.admit_after <= 1) return;
    std::uint32_t& seen = seen_[key];
    seen += occurrences;
    if (found) {
      ++admitted_;
      if (seen < policy_.policy.admit_after) ++early_;
    } else if (policy_.forgets_once()) {
      EXPECT_LT(seen, 2 * policy_.policy.admit_after) << "key " << key;
    }
  }

  Policy policy_;
  std::shared_ptr<transport::PersistentMemory> memory_;
  std::optional<StoreProcess> process_;
  Model rows_;
  std::unordered_map<std::int64_t, std::uint32_t> seen_;  // occurrences that the admission filter has counted
  std::uint64_t early_ = 0, admitted_ = 0;
};

class RandomEntries {
 public:
  RandomEntries(const Policy& policy, std::uint64_t seed) : policy_(policy), random_(seed) {}
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  ModelEntry next() {
    static constexpr RowOp kOps[] = {RowOp::gradient, RowOp::gradient, RowOp::gradient, RowOp::gradient,
                                     RowOp::gradient, RowOp::add,      RowOp::insert,   RowOp::erase,
                                     RowOp::erase,    RowOp::set};
    // A row that was set does not show whether its key was evicted before.
    ModelEntry entry;
    entry.op = kOps[below(policy_.evicts() ? 9 : 10)];
    entry.call = ++calls_;
    for (std::uint64_t i = 1 + below(below(8) == 0 ? kMaxKeysOfEntry : 512); i > 0; --i) {
      // Half of the occurrences are of a sixteenth of the keys.
      const std::uint64_t range = kModelKeys / (below(2) == 0 ? 1 : 16);
      entry.keys.push_back(static_cast<std::int64_t>(below(range)) * 1'000'000'007 - 99);
      if (!has_values(entry.op)) continue;
      for (std::size_t column = 0; column < kModelWidth; ++column)
        entry.values.push_back(static_cast<double>(1 + below(9)));
    }
    return entry;
  }

 private:
  Policy policy_;
  std::mt19937_64 random_;
  std::uint32_t calls_ = 0;
};

class TableModelTest : public testing::TestWithParam<Policy> {
 protected:
  static constexpr int kEntries = 140;  // of 480 keys on average: a million keys in all tests together
  static constexpr std::uint64_t kSeed = 11;
};

TEST_P(TableModelTest, AgreesWithAMapAcrossRestartsAndRestores) {
  CheckedTable table(GetParam());
  RandomEntries entries(GetParam(), kSeed);
  for (int i = 0; i < kEntries && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", entry " + std::to_string(i));
    const ModelEntry entry = entries.next();
    if (i % 10 == 9) table.restart_during(entry);
    table.apply(entry);
    if (i % 30 == 15) table.erase_below(static_cast<double>(entries.below(8)));
    if (i % 40 == 39) table.save_and_restore(entries.next(), /*in_place=*/i % 80 == 79);
  }
  if (GetParam().policy.admit_after > 1) {
    EXPECT_GT(table.admitted(), 1000U);
    EXPECT_LT(table.early(), table.admitted() / 50);
  }
}

std::array<std::uint64_t, 8> counts_of(Store& store) {
  const protocol::TableStatistics s = store.table_statistics({1, 0});
  return {s.keys, s.inserted, s.erased, s.refused, s.evicted, s.not_admitted, s.growths, s.row_bytes};
}

// The replica is not persistent and has no journal, the ps has both.
TEST_P(TableModelTest, ReplicaHasTheSameKeysRowsAndStates) {
  CheckedTable table(GetParam());
  transport::LoopHub hub;
  const auto fabric = hub.open();
  Store replica(*fabric, 1 << 20, 0);
  replica.create(table_of(GetParam()));
  RandomEntries entries(GetParam(), kSeed + 1);
  for (int i = 0; i < kEntries && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(kSeed + 1) + ", entry " + std::to_string(i));
    const ModelEntry entry = entries.next();
    apply_entry(replica, entry.bytes());
    table.apply(entry);
    EXPECT_EQ(counts_of(replica), counts_of(table.store()));
    if (i % 10 != 9) continue;
    const auto rows = [](Store& store) {
      return rows_by_key(shard_contents(store).at("user/part_0"), /*with_states=*/true);
    };
    EXPECT_TRUE(rows(replica) == rows(table.store()));
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, TableModelTest, testing::ValuesIn(policies()),
                         [](const auto& policy) { return policy.param.name; });

}  // namespace
}  // namespace capstan::ps
