// restore_plan_test.cpp -- shards are assembled from files with any other partition, and each dataset is
// verified once.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "io/checkpoint_sample.hpp"
#include "io/temporary_directory.hpp"
#include "protocol/restore_plan.hpp"

namespace capstan::protocol {
namespace {

namespace fs = std::filesystem;

/// Returns the bytes that a plan puts into an array of a shard.
std::string bytes_of(const RestorePart& part, std::size_t shard, std::uint32_t array, std::uint64_t size) {
  std::string out(size, '?');
  for (const RestorePiece& piece : part.shards.at(shard).pieces) {
    if (piece.array != array) continue;
    const std::string file = io::file_text(fs::path(part.directory) / part.files.at(piece.file));
    out.replace(piece.at, piece.bytes, file.substr(piece.offset, piece.bytes));
  }
  return out;
}

TEST(RestorePlan, AssemblesAnyPartitionFromAnyOther) {
  const auto arrays = io::sample_arrays();
  const io::SampleArray& value = arrays[0];
  const io::SampleArray& slot = arrays[1];
  for (const int writers : {1, 2, 3, 5, 101}) {
    const io::TemporaryDirectory temporary;
    io::CheckpointDirectory directory(temporary.path());
    const io::CheckpointReader reader(io::save(directory, 1, arrays, writers));
    for (const int readers : {1, 2, 3, 5, 101}) {
      SCOPED_TRACE(std::to_string(writers) + " wrote, " + std::to_string(readers) + " read");
      RestorePlan plan(reader, readers);
      for (int ps = 0; ps < readers; ++ps) {
        const auto [first, rows] = io::cut(101, ps, readers);
        plan.fill(ps, {7, static_cast<std::uint32_t>(ps), value.variable, first, rows, {"accumulator"}});
      }
      const auto parts = plan.parts();
      std::string values;
      std::string slots;
      for (int ps = 0; ps < readers; ++ps) {
        const auto& part = parts.at(static_cast<std::size_t>(ps));
        ASSERT_EQ(part.shards.size(), 1U);
        EXPECT_EQ(part.shards[0].variable, 7U);
        EXPECT_EQ(part.shards[0].shard, static_cast<std::uint32_t>(ps));
        EXPECT_GE(part.shards[0].steps, 1000);
        const std::uint64_t size = io::cut(101, ps, readers).rows * value.row_bytes();
        values += bytes_of(part, 0, 0, size);
        slots += bytes_of(part, 0, 1, size);
      }
      EXPECT_EQ(values, std::string(value.bytes.begin(), value.bytes.end()));
      EXPECT_EQ(slots, std::string(slot.bytes.begin(), slot.bytes.end()));
    }
  }
}

TEST(RestorePlan, EachNeededDatasetIsVerifiedByOnePs) {
  const io::TemporaryDirectory temporary;
  io::CheckpointDirectory directory(temporary.path());
  const io::CheckpointReader reader(io::save(directory, 1, io::sample_arrays(), 3));
  for (const int readers : {1, 2, 3, 5}) {
    RestorePlan plan(reader, readers);
    std::uint64_t shard_bytes = 0;
    for (int ps = 0; ps < readers; ++ps) {
      const auto [first, rows] = io::cut(53, ps, readers);
      plan.fill(ps, {1, static_cast<std::uint32_t>(ps), "weights", first, rows, {"m", "v"}});
      shard_bytes += rows * 3 * sizeof(double);
    }
    EXPECT_EQ(plan.bytes(), shard_bytes) << "excludes other variables";
    std::multiset<std::string> verified;
    std::size_t most = 0;
    const auto checks = plan.checks();
    ASSERT_EQ(checks.size(), static_cast<std::size_t>(readers));
    for (std::size_t ps = 0; ps < checks.size(); ++ps) {
      most = std::max(most, checks[ps].datasets.size());
      for (const DatasetCheck& dataset : checks[ps].datasets) {
        verified.insert(checks[ps].files.at(dataset.file) + dataset.path);
        if (readers == 3) {
          EXPECT_EQ(checks[ps].files.at(dataset.file), io::part_file_name(static_cast<int>(ps), 3));
        }
      }
    }
    EXPECT_EQ(verified.size(), 9U);
    EXPECT_EQ(std::set<std::string>(verified.begin(), verified.end()).size(), 9U);
    EXPECT_EQ(most, readers == 1 ? 9U : readers == 2 ? 6U : 3U) << readers;
  }
}

TEST(RestorePlan, BalancesTheVerificationOfUnusedDatasets) {
  const io::TemporaryDirectory temporary;
  io::CheckpointDirectory directory(temporary.path());
  const io::CheckpointReader reader(io::save(directory, 1, io::sample_arrays(), 4));
  RestorePlan plan(reader, 2);
  for (const auto& variable : reader.variables()) plan.check_complete(variable.name);
  std::map<std::size_t, std::uint64_t> bytes;
  std::uint64_t all = 0;
  const auto checks = plan.checks();
  for (std::size_t ps = 0; ps < checks.size(); ++ps) {
    for (const DatasetCheck& dataset : checks[ps].datasets) bytes[ps] += dataset.bytes;
    all += bytes[ps];
  }
  std::uint64_t expected = 0;
  for (const auto& array : io::sample_arrays()) expected += array.bytes.size();
  EXPECT_EQ(all, expected);
  EXPECT_NEAR(static_cast<double>(bytes[0]), static_cast<double>(bytes[1]), 0.3 * static_cast<double>(all));
}

}  // namespace
}  // namespace capstan::protocol
