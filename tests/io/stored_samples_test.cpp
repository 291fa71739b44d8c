// stored_samples_test.cpp -- this version reads checkpoints of earlier versions.
#include <gmock/gmock.h>

#include <cmath>

#include "io/hdf5/checkpoint_reader.hpp"
#include "stored_sample.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

using ::testing::ElementsAre;

template <class T>
std::vector<T> rows(const CheckpointReader& reader, const std::string& variable,
                    const std::string& component) {
  const VariableInfo& info = reader.variable(variable);
  std::size_t elements = 1;
  for (const auto size : info.shape) elements *= size;
  std::vector<T> out(elements);
  reader.read_rows(variable, component, 0, info.shape[0], out.data());
  return out;
}

/// Two ps, three shards of each variable. Computed by hand from the update rules (capstan/optimizers.hpp):
/// "column" started as -1, its sums as 0.25; gradients 1, 2, 3, 4; learning rate 0.5. "brain" (bfloat16)
/// started as 1; gradients 1, 2, -4; learning rate 0.25.
TEST(StoredSamples, Version1IsRead) {
  const TemporaryDirectory directory;
  unpack_sample("checkpoint_v1", directory.path() / "checkpoint-00000012");
  const CheckpointReader reader(directory.path() / "checkpoint-00000012");
  reader.verify();
  EXPECT_EQ(reader.step(), 12);
  EXPECT_EQ(reader.user_state(), R"({"epoch":3})");
  EXPECT_EQ(reader.settings(), R"({"dim":"2"})");
  EXPECT_EQ(
      reader.positions().at("splits"),
      R"({"data":"50 examples, 10 a split","done":{"1":[[0,2]]},"epoch":1,"shuffle_seed":null,"splits":5})");
  EXPECT_TRUE(reader.counters().empty());
  EXPECT_EQ(reader.written_by(), "");
  std::vector<std::string> names;
  for (const VariableInfo& variable : reader.variables()) names.push_back(variable.name);
  EXPECT_THAT(names, ElementsAre("brain", "column", "flags", "model/rows", "step"));
  EXPECT_EQ(reader.parts().size(), 4U);

  EXPECT_EQ(rows<std::int64_t>(reader, "step", "value"), std::vector<std::int64_t>{42});
  EXPECT_EQ(rows<std::uint16_t>(reader, "brain", "value"),
            (std::vector<std::uint16_t>{0x3f40, 0x3f00, 0x4000}));
  EXPECT_EQ(rows<float>(reader, "brain", "velocity"), (std::vector<float>{-0.25F, -0.5F, 1}));
  EXPECT_EQ(rows<double>(reader, "column", "accumulator"), (std::vector<double>{1.25, 4.25, 9.25, 16.25}));
  const auto column = rows<double>(reader, "column", "value");
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(column[i], -1 - 0.5 * (i + 1) / std::sqrt(0.25 + (i + 1) * (i + 1)), 1e-6) << i;
  EXPECT_EQ(rows<std::uint8_t>(reader, "flags", "value"), (std::vector<std::uint8_t>{1, 1}));
  // Adam with learning rate 0.125: row 4 got gradient 1, -2 once, row 0 twice, rows 1 to 3 none.
  const auto values = rows<float>(reader, "model/rows", "value");
  EXPECT_NEAR(values[8], 0.5 - 0.125, 1e-5);
  EXPECT_NEAR(values[9], 0.5 + 0.125, 1e-5);
  EXPECT_THAT(std::vector<float>(values.begin() + 2, values.begin() + 8), testing::Each(0.5F));
  const VariableInfo& table = reader.variable("model/rows");
  EXPECT_EQ(table.optimizer, "adam(learning_rate=0.125, beta1=0.9, beta2=0.999, epsilon=1e-07)");
  EXPECT_EQ(table.steps_of(0, 2), 2);
  EXPECT_EQ(table.steps_of(2, 2), 0);
  EXPECT_EQ(table.steps_of(4, 1), 1);
}

/// In the base, w of shape (5, 2) was 1 to 10, and its sums half of that. In rows 1 and 4, the increment
/// negates the values and adds 100 to the sums; n is unchanged.
TEST(StoredSamples, Version2IsReadWithItsBase) {
  const TemporaryDirectory directory;
  unpack_sample("checkpoint_v2_base", directory.path() / "checkpoint-00000010");
  unpack_sample("checkpoint_v2", directory.path() / "checkpoint-00000012");
  const CheckpointReader reader(directory.path() / "checkpoint-00000012");
  reader.verify();
  EXPECT_EQ(reader.step(), 12);
  EXPECT_EQ(reader.counters().at("c"), 12);
  ASSERT_NE(reader.base(), nullptr);
  EXPECT_EQ(reader.base()->step(), 10);
  EXPECT_EQ(reader.variable("w").changed, std::optional<std::uint64_t>(2));
  EXPECT_THAT(rows<float>(reader, "w", "value"), ElementsAre(1, 2, -3, -4, 5, 6, 7, 8, -9, -10));
  EXPECT_THAT(rows<float>(reader, "w", "accumulator"),
              ElementsAre(0.5F, 1, 101.5F, 102, 2.5F, 3, 3.5F, 4, 104.5F, 105));
  EXPECT_THAT(rows<std::int64_t>(reader, "n", "value"), ElementsAre(7, 8, 9));
}

}  // namespace
}  // namespace capstan::io
