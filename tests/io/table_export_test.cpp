// table_export_test.cpp -- exports of a checkpoint with a dynamic table; lookups by key in the model file.
// Tests: io/export/exported_arrays.cpp
// Tests: io/export/table_stream.cpp
// Tests: io/hdf5/table_parts.cpp
// Tests: io/key_index.hpp
#include <gmock/gmock.h>

#include <limits>
#include <random>
#include <unordered_map>

#include "capstan/model.hpp"
#include "checkpoint_sample.hpp"
#include "io/export/export.hpp"
#include "io/hdf5/table_parts.hpp"
#include "io/key_index.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Keys = std::vector<std::int64_t>;

template <class T>
SampleArray array_with(std::string variable, std::string component, std::vector<std::uint64_t> shape,
                       const std::vector<T>& values) {
  const char* const raw = reinterpret_cast<const char*>(values.data());
  return {std::move(variable),
          std::move(component),
          dtype_of<T>,
          std::move(shape),
          {raw, raw + values.size() * sizeof(T)}};
}

/// A table "user" in two parts, with the keys 7 and -9 in the first and the smallest one in the second, and a
/// variable "w". Row 0 of each part is the default row.
class TableExportTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

  void SetUp() override {
    constexpr auto kUsed = std::numeric_limits<std::int32_t>::min() | 5;
    const std::vector<SampleArray> arrays{
        array_with<float>("user/part_0", "value", {4, 2}, {1, 1, 7, 7.5F, 3, 3, -9, -9.5F}),
        array_with<float>("user/part_0", "m", {4, 2}, {0, 0, 70, 71, 0, 0, 90, 91}),
        array_with<std::int64_t>("user/part_0", kTableKeys, {4}, {0, 7, 8, -9}),
        array_with<std::int32_t>("user/part_0", kTableStates, {4}, {0, kUsed, 0, kUsed}),
        array_with<float>("user/part_1", "value", {2, 2}, {2, 2, 4, 5}),
        array_with<float>("user/part_1", "m", {2, 2}, {0, 0, 40, 50}),
        array_with<std::int64_t>("user/part_1", kTableKeys, {2}, {0, kSmallest}),
        array_with<std::int32_t>("user/part_1", kTableStates, {2}, {0, kUsed}),
        make_array<double>("w", "value", {5}, 1)};
    CheckpointDirectory directory(scratch_.path() / "run");
    save(directory, 12, arrays, 2);
  }
  CheckpointReader reader() const { return CheckpointReader(scratch_.path() / "run" / checkpoint_name(12)); }
  Model exported() const {
    const auto file = scratch_.path() / "model.h5";
    OutputFile to(file, /*replace=*/true);
    export_model(reader(), exported_arrays(reader(), {}, /*with_slots=*/false), to, {});
    to.publish();
    return Model(file);
  }

  TemporaryDirectory scratch_;
};

TEST_F(TableExportTest, JoinsThePartsOfATable) {
  const CheckpointReader from = reader();
  EXPECT_EQ(count_keys(from, from.variable("user/part_0")), 2U);
  std::vector<std::string> names;
  for (const ArrayInfo& array : exported_arrays(from, {}, /*with_slots=*/true))
    names.push_back(array.variable + ":" + array.component + ":" + std::to_string(array.shape.at(0)));
  EXPECT_THAT(names, ElementsAre("user:value:3", "user:m:3", "user:table_key:3", "w:value:5"));
  for (const ArrayInfo& array : exported_arrays(from, {"user"}, /*with_slots=*/true)) {
    std::string bytes;
    read_exported(from, array, false, {}, [&](std::string_view piece) { bytes += piece; });
    ASSERT_EQ(bytes.size(), array.bytes());
    if (array.component != "m") continue;
    std::vector<float> slots(6);
    std::memcpy(slots.data(), bytes.data(), bytes.size());
    EXPECT_THAT(slots, ElementsAre(70, 71, 90, 91, 40, 50));
  }
}

TEST_F(TableExportTest, RejectsAPartAndAMissingName) {
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { exported_arrays(reader(), {"user/part_1"}, false); }),
              HasSubstr("\"user\""));
  (void)error_of(Code::not_found, [&] { exported_arrays(reader(), {"users"}, false); });
}

TEST_F(TableExportTest, ModelLooksUpRowsByKey) {
  const Model model = exported();
  EXPECT_THAT(model.variables(), ElementsAre("user", "w"));
  EXPECT_TRUE(model.is_table("user"));
  EXPECT_FALSE(model.is_table("w"));
  EXPECT_EQ(model.shape("user"), (Shape{3, 2}));
  EXPECT_THAT(model.keys("user"), ElementsAre(7, -9, kSmallest));
  EXPECT_THAT(model.contains("user", Keys{8, 7, 0, kSmallest}), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(model.lookup<float>("user", Keys{kSmallest, 8, -9, 7, 0}).values,
              ElementsAre(4, 5, 0, 0, -9, -9.5F, 7, 7.5F, 0, 0));
  EXPECT_THAT(model.read<float>("user").values, ElementsAre(7, 7.5F, -9, -9.5F, 4, 5));
  EXPECT_EQ(model.lookup<double>("w", Keys{4}).values.size(), 1U);
  (void)error_of(Code::invalid_argument, [&] { model.keys("w"); });
  (void)error_of(Code::not_found, [&] { model.contains("v", Keys{1}); });
  model.verify();
}

TEST_F(TableExportTest, SupportsATableWithoutKeys) {
  const std::vector<SampleArray> arrays{array_with<float>("user/part_0", "value", {1, 2}, {1, 1}),
                                        array_with<std::int64_t>("user/part_0", kTableKeys, {1}, {0}),
                                        array_with<std::int32_t>("user/part_0", kTableStates, {1}, {0})};
  CheckpointDirectory directory(scratch_.path() / "run");
  save(directory, 12, arrays, 1);
  const Model model = exported();
  EXPECT_EQ(model.shape("user"), (Shape{0, 2}));
  EXPECT_THAT(model.lookup<float>("user", Keys{0}).values, ElementsAre(0, 0));
}

TEST(KeyIndex, AgreesWithAMap) {
  std::mt19937_64 random(3);
  std::unordered_map<std::int64_t, std::uint64_t> map;
  Keys keys;
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    const auto key = static_cast<std::int64_t>(i % 2 == 0 ? i << 40 : random());
    if (map.emplace(key, keys.size()).second) keys.push_back(key);
  }
  const std::vector<std::int64_t> index = make_key_index(keys);
  ASSERT_EQ(index.size(), key_index_slots(keys.size()));
  const KeyIndexReader reader(reinterpret_cast<const char*>(index.data()), index.size(),
                              reinterpret_cast<const char*>(keys.data()), keys.size());
  for (const auto& [key, row] : map) ASSERT_EQ(reader.find(key), row) << key;
  for (std::int64_t key = 1; key < 10'000; ++key) ASSERT_EQ(reader.find(key).has_value(), map.contains(key));
}

}  // namespace
}  // namespace capstan::io
