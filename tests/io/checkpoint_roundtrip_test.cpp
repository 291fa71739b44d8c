// checkpoint_roundtrip_test.cpp -- checkpoints of any number of ps restore to any other number, bit for bit.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "checkpoint_sample.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WrittenBy : public ::testing::TestWithParam<int> {};

TEST_P(WrittenBy, EveryRangeOfRowsRoundTrips) {
  const TemporaryDirectory scratch;
  const auto arrays = sample_arrays();
  CheckpointDirectory directory(scratch.path());
  const CheckpointReader reader(save(directory, 12, arrays, GetParam()));
  int slabs = 0;
  for (const SampleArray& array : arrays) {
    for (std::uint64_t first = 0; first < array.shape[0]; first += 1 + array.shape[0] / 11) {
      for (std::uint64_t rows = 1; first + rows <= array.shape[0]; rows += 1 + array.shape[0] / 13) {
        std::vector<char> out(rows * array.row_bytes() + 1, '\x5a');
        reader.read_rows(array.variable, array.component, first, rows, out.data());
        ASSERT_EQ(std::memcmp(out.data(), array.bytes.data() + first * array.row_bytes(), out.size() - 1), 0)
            << array.variable << " " << array.component << " rows " << first << " + " << rows;
        ASSERT_EQ(out.back(), '\x5a') << "wrote past the rows";
        ++slabs;
      }
    }
  }
  EXPECT_GT(slabs, 300);
}

TEST_P(WrittenBy, AnyOtherNumberOfPsRestores) {
  const TemporaryDirectory scratch;
  const auto arrays = sample_arrays();
  CheckpointDirectory directory(scratch.path());
  const CheckpointReader reader(save(directory, 12, arrays, GetParam()));
  reader.verify();
  for (const int readers : {1, 2, 3, 5}) {
    for (const SampleArray& array : arrays) {
      std::vector<char> whole;
      for (int i = 0; i < readers; ++i) {
        const auto [first, rows] = cut(array.shape[0], i, readers);
        std::vector<char> shard(rows * array.row_bytes());
        reader.read_rows(array.variable, array.component, first, rows, shard.data());
        whole.insert(whole.end(), shard.begin(), shard.end());
      }
      EXPECT_EQ(whole, array.bytes) << array.variable << " into " << readers;
    }
  }
}

TEST_P(WrittenBy, MetadataRoundTrips) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  const std::string state = R"({"epoch":3,"loss":0.1,"seed":18446744073709551615})";
  const CheckpointReader reader(
      save(directory, 123'456'789'012, sample_arrays(), GetParam(), {state, R"({"dim":"128"})"}));
  EXPECT_EQ(reader.step(), 123'456'789'012);
  EXPECT_EQ(reader.directory().filename(), "checkpoint-123456789012");
  EXPECT_EQ(nlohmann::json::parse(reader.user_state()), nlohmann::json::parse(state));
  EXPECT_EQ(reader.settings(), R"({"dim":"128"})");

  std::vector<std::string> names;
  for (const VariableInfo& variable : reader.variables()) names.push_back(variable.name);
  EXPECT_THAT(names, ElementsAre("counts", "entities/embedding", "step", "weights"));

  const VariableInfo& weights = reader.variable("weights");
  EXPECT_EQ(weights.dtype, DType::float64);
  EXPECT_THAT(weights.shape, ElementsAre(53));
  EXPECT_EQ(weights.optimizer, "Adagrad(learning_rate=0.1)");
  ASSERT_EQ(weights.slots.size(), 2U);
  EXPECT_EQ(weights.slots[0].name, "m");
  EXPECT_EQ(weights.slots[1].name, "v");
  EXPECT_EQ(weights.slots[1].dtype, DType::float64);
  EXPECT_THAT(weights.slots[1].shape, ElementsAre(53));
  ASSERT_EQ(weights.shards.size(), static_cast<std::size_t>(GetParam()));
  EXPECT_EQ(weights.steps, 1000 + GetParam() - 1);
  EXPECT_EQ(weights.steps_of(0, 1), 1000);
  EXPECT_EQ(weights.steps_of(52, 1), 1000 + GetParam() - 1);
  EXPECT_EQ(weights.steps_of(0, 53), 1000 + GetParam() - 1);
  const auto rate_of_second = GetParam() == 1 ? std::nullopt : std::optional(1.5);
  EXPECT_EQ(weights.learning_rate_of(0, 1), std::nullopt);
  EXPECT_EQ(weights.learning_rate_of(0, 53), rate_of_second);
  EXPECT_EQ(reader.variable("counts").learning_rate_of(0, 1), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Ps, WrittenBy, ::testing::Values(1, 2, 3, 5));

TEST(Checkpoint, PartsMayLackAVariableWithFewRows) {
  const TemporaryDirectory scratch;
  const auto arrays = sample_arrays();
  CheckpointDirectory directory(scratch.path());
  const CheckpointReader reader(save(directory, 1, arrays, 24));  // "step" has one row, "counts" 17
  reader.verify();
  expect_holds(reader, arrays);
  EXPECT_EQ(reader.variable("step").shards.size(), 1U);
}

TEST(Checkpoint, SpecialValuesRoundTrip) {
  const TemporaryDirectory scratch;
  // Including zeros and the fill values of virtual datasets.
  const std::vector<std::uint32_t> bits{0x7fc0dead, 0,          0x80000000, 0x7f800000,
                                        0xff800000, 0x7fc0dead, 0x00000001, 0xffffffff};
  SampleArray floats{"f", "value", DType::float32, {8}, std::vector<char>(32)};
  std::memcpy(floats.bytes.data(), bits.data(), 32);
  const std::vector<std::int64_t> integers{std::numeric_limits<std::int64_t>::min(), 0, -1,
                                           std::numeric_limits<std::int64_t>::max()};
  SampleArray longs{"i", "value", DType::int64, {4, 1}, std::vector<char>(32)};
  std::memcpy(longs.bytes.data(), integers.data(), 32);
  for (const int parts : {1, 2, 4}) {
    CheckpointDirectory directory(scratch.path());
    const CheckpointReader reader(save(directory, parts, {floats, longs}, parts));
    expect_holds(reader, {floats, longs});
  }
}

TEST(Checkpoint, AnArrayOfManySlabsRoundTrips) {
  const TemporaryDirectory scratch;
  const auto arrays = std::vector{make_array<float>("large", "value", {30'011, 128}, 0)};  // 15 MB
  CheckpointDirectory directory(scratch.path());
  const CheckpointReader reader(save(directory, 1, arrays, 2));
  reader.verify();
  expect_holds(reader, arrays);
}

TEST(Checkpoint, StateRoundTripsWithoutVariables) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  const CheckpointReader reader(save(directory, 0, {}, 2, {.user_state = "[1,2]"}));
  EXPECT_TRUE(reader.variables().empty());
  EXPECT_EQ(reader.user_state(), "[1,2]");
  EXPECT_EQ(error_of(Code::not_found, [&] { (void)reader.variable("w"); }),
            reader.directory().string() + " has no variable \"w\"; it has none");
}

TEST(Checkpoint, RejectsReadsOfMissingRowsAndArrays) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  const CheckpointReader reader(save(directory, 1, sample_arrays(), 2));
  double out[64];
  EXPECT_THAT(error_of(Code::not_found, [&] { reader.read_rows("wieghts", "value", 0, 1, out); }),
              HasSubstr("\"weights\""));
  EXPECT_THAT(error_of(Code::not_found, [&] { reader.read_rows("weights", "accumulator", 0, 1, out); }),
              HasSubstr("no slot \"accumulator\""));
  error_of(Code::out_of_range, [&] { reader.read_rows("weights", "value", 53, 1, out); });
  error_of(Code::out_of_range, [&] { reader.read_rows("weights", "value", 0, 54, out); });
  error_of(Code::out_of_range,
           [&] { reader.read_rows("weights", "value", 1, std::numeric_limits<std::uint64_t>::max(), out); });
  reader.read_rows("weights", "value", 53, 0, out);  // an empty read at the end
}

TEST(Checkpoint, ThreadsWriteAndReadConcurrently) {
  const TemporaryDirectory scratch;
  const auto arrays = sample_arrays();
  CheckpointDirectory directory(scratch.path());
  constexpr int kPs = 6;
  const auto parts = directory.begin(7);
  std::vector<PartReport> reports(kPs);
  std::vector<std::thread> threads;
  for (int i = 0; i < kPs; ++i) {
    threads.emplace_back([&, i] {
      reports[static_cast<std::size_t>(i)] =
          write_part(parts / part_file_name(i, kPs), part_arrays(arrays, i, kPs));
    });
  }
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  const auto saved = directory.publish(7, reports);
  for (int i = 0; i < kPs; ++i) {
    threads.emplace_back([&] {
      const CheckpointReader reader(saved);
      reader.verify();
      expect_holds(reader, arrays);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Checkpoint, AMovedReaderIsUsable) {
  const TemporaryDirectory scratch;
  const auto old_arrays = sample_arrays(1), new_arrays = sample_arrays(50);
  CheckpointDirectory directory(scratch.path());
  CheckpointReader reader(save(directory, 1, old_arrays, 2));
  reader = CheckpointReader(save(directory, 2, new_arrays, 3));
  expect_holds(reader, new_arrays);
}

}  // namespace
}  // namespace capstan::io
