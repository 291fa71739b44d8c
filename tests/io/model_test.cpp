// model_test.cpp -- reads of model files: complete variables, rows, ids; rejection of damaged files.
// Tests: io/hdf5/model_file.cpp
#include "capstan/model.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <thread>

#include "checkpoint_sample.hpp"
#include "io/checksum.hpp"
#include "io/export/export.hpp"
#include "io/hdf5/layout.hpp"
#include "stored_sample.hpp"
#include "support/names_all.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SampleArray empty_array(std::string name, std::vector<std::uint64_t> shape) {
  return {std::move(name), kValue, DType::float32, std::move(shape), {}};
}

/// A checkpoint of three ps, and the model exported from it.
class ModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CheckpointDirectory directory(scratch_.path() / "run");
    save(directory, 12, arrays_, 3);
    export_to(file_);
  }

  void export_to(const fs::path& file) const {
    const CheckpointReader reader(scratch_.path() / "run" / checkpoint_name(12));
    OutputFile to(file, /*replace=*/true);
    export_model(reader, arrays_of(reader.variables(), /*with_slots=*/true), to, {});
    to.publish();
  }

  const SampleArray& sample(const std::string& name) const {
    for (const SampleArray& array : arrays_) {
      if (array.variable == name && array.component == kValue) return array;
    }
    throw Error(Code::not_found, name);
  }

  template <class T>
  void expect_rows(const Array<T>& found, const std::string& name,
                   const std::vector<std::int64_t>& rows) const {
    const SampleArray& array = sample(name);
    std::vector<char> expected;
    for (const std::int64_t row : rows) {
      const auto begin = array.bytes.begin() + row * static_cast<std::int64_t>(array.row_bytes());
      expected.insert(expected.end(), begin, begin + static_cast<std::int64_t>(array.row_bytes()));
    }
    ASSERT_EQ(found.values.size() * sizeof(found.values[0]), expected.size());
    EXPECT_EQ(std::memcmp(found.values.data(), expected.data(), expected.size()), 0) << name;
    Shape shape(array.shape.begin(), array.shape.end());
    shape[0] = static_cast<std::int64_t>(rows.size());
    EXPECT_EQ(found.shape, shape);
  }

  static std::vector<SampleArray> all_arrays() {
    std::vector<SampleArray> arrays = sample_arrays();
    arrays.push_back(make_array<std::int32_t>("deep", "value", {5, 2, 3}, 9));
    arrays.push_back({"half", "value", DType::float16, {3}, {0, 0x3c, 0, static_cast<char>(0xc0), 1, 2}});
    arrays.push_back({"brain", "value", DType::bfloat16, {2}, {static_cast<char>(0x80), 0x3f, 1, 2}});
    arrays.push_back({"flags", "value", DType::boolean, {4}, {1, 0, 0, 1}});
    return arrays;
  }

  TemporaryDirectory scratch_;
  std::vector<SampleArray> arrays_ = all_arrays();
  fs::path file_ = scratch_.path() / "model.h5";
};

TEST_F(ModelTest, DescribesItsVariables) {
  const Model model(file_);
  EXPECT_EQ(model.step(), 12);
  EXPECT_EQ(model.file(), file_);
  EXPECT_THAT(model.variables(), ElementsAre("brain", "counts", "deep", "entities/embedding", "flags", "half",
                                             "step", "weights"));
  EXPECT_EQ(model.shape("entities/embedding"), (Shape{101, 7}));
  EXPECT_EQ(model.dtype("weights"), DType::float64);
  EXPECT_EQ(model.user_state(), "null");
  model.verify();
}

TEST_F(ModelTest, KeepsTheUserStateOfTheCheckpoint) {
  CheckpointDirectory directory(scratch_.path() / "other");
  save(directory, 12, arrays_, 1, {.user_state = R"({"program":"train kge"})"});
  const CheckpointReader reader(scratch_.path() / "other" / checkpoint_name(12));
  OutputFile to(file_, /*replace=*/true);
  export_model(reader, arrays_of(reader.variables(), /*with_slots=*/false), to, {});
  to.publish();
  EXPECT_EQ(Model(file_).user_state(), R"({"program":"train kge"})");
}

TEST_F(ModelTest, ReadsCompleteVariablesOfEveryDtype) {
  const Model model(file_);
  const auto all = [&](const std::string& name) {
    std::vector<std::int64_t> rows(sample(name).shape[0]);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
    return rows;
  };
  expect_rows(model.read<float>("entities/embedding"), "entities/embedding", all("entities/embedding"));
  expect_rows(model.read<double>("weights"), "weights", all("weights"));
  expect_rows(model.read<std::int64_t>("counts"), "counts", all("counts"));
  expect_rows(model.read<std::int32_t>("deep"), "deep", all("deep"));
  expect_rows(model.read<float16>("half"), "half", all("half"));
  expect_rows(model.read<bfloat16>("brain"), "brain", all("brain"));
  expect_rows(model.read<bool>("flags"), "flags", all("flags"));
  EXPECT_EQ(static_cast<float>(model.read<float16>("half").values[1]), -2.0F);
  EXPECT_EQ(static_cast<float>(model.read<bfloat16>("brain").values[0]), 1.0F);
  EXPECT_THAT(model.read<bool>("flags").values, ElementsAre(1, 0, 0, 1));
}

TEST_F(ModelTest, ReadsAndLooksUpRows) {
  const Model model(file_);
  expect_rows(model.read_rows<float>("entities/embedding", 33, 3), "entities/embedding", {33, 34, 35});
  EXPECT_TRUE(model.read_rows<float>("entities/embedding", 101, 0).values.empty());
  const std::vector<std::int64_t> ids{100, 0, 67, 67, 34};
  expect_rows(model.lookup<float>("entities/embedding", ids), "entities/embedding", ids);
  expect_rows(model.lookup<std::int32_t>("deep", std::vector<std::int64_t>{4, 0}), "deep", {4, 0});
  EXPECT_EQ(model.lookup<float>("entities/embedding", {}).shape, (Shape{0, 7}));
  std::vector<float> out(ids.size() * 7);
  model.lookup<float>("entities/embedding", ids, out);
  EXPECT_EQ(out, model.lookup<float>("entities/embedding", ids).values);
}

TEST_F(ModelTest, RejectsMissingVariablesRowsAndDtypes) {
  const Model model(file_);
  EXPECT_THAT(error_of(Code::not_found, [&] { model.shape("entity"); }),
              NamesAll({"\"entities/embedding\"", "\"flags\""}));
  EXPECT_THAT(error_of(Code::not_found, [&] { model.read<float>("accumulator"); }),
              HasSubstr(file_.string()));
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { model.read<float>("weights"); }),
              NamesAll({"\"weights\"", "float64", "float32"}));
  error_of(Code::invalid_argument, [&] { model.lookup<std::int64_t>("deep", std::vector<std::int64_t>{0}); });
  for (const std::int64_t id : {-1, 101}) {
    EXPECT_THAT(
        error_of(Code::out_of_range, [&] { model.lookup<float>("entities/embedding", std::vector{id}); }),
        NamesAll({"id " + std::to_string(id), "\"entities/embedding\"", "101 rows"}));
  }
  error_of(Code::out_of_range, [&] { model.read_rows<float>("entities/embedding", 100, 2); });
  error_of(Code::out_of_range, [&] { model.read_rows<float>("entities/embedding", -1, 1); });
  std::vector<float> too_small(6);
  EXPECT_THAT(
      error_of(Code::invalid_argument,
               [&] { model.lookup<float>("entities/embedding", std::vector<std::int64_t>{3}, too_small); }),
      NamesAll({"7", "6"}));
}

TEST_F(ModelTest, SupportsEmptyVariables) {
  CheckpointDirectory directory(scratch_.path() / "empty");
  const auto scratch = directory.begin(1);
  const SampleArray none = empty_array("none", {0, 4}), flat = empty_array("flat", {3, 0});
  static const char nothing = 0;
  const std::vector<PartArray> arrays{{none.variable, kValue, none.dtype, none.shape, 0, 0, &nothing},
                                      {flat.variable, kValue, flat.dtype, flat.shape, 0, 3, &nothing}};
  const CheckpointReader reader(
      directory.publish(1, std::vector{write_part(scratch / part_file_name(0, 1), arrays)}));
  OutputFile to(file_, true);
  export_model(reader, arrays_of(reader.variables(), false), to, {});
  to.publish();
  const Model model(file_);
  EXPECT_EQ(model.read<float>("none").shape, (Shape{0, 4}));
  EXPECT_EQ(model.lookup<float>("flat", std::vector<std::int64_t>{2, 2}).shape, (Shape{2, 0}));
  EXPECT_THAT(
      error_of(Code::out_of_range, [&] { model.lookup<float>("none", std::vector<std::int64_t>{0}); }),
      HasSubstr("0 rows"));
  model.verify();
}

TEST_F(ModelTest, DetectsAFlippedBitAnywhere) {
  const std::string whole = file_text(file_);
  int flips = 0;
  for (std::size_t at = 0; at < whole.size(); at += 37) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    const auto file = scratch_.write("damaged.h5", damaged);
    EXPECT_THAT(error_of(Code::data_loss, [&] { Model(file).verify(); }), HasSubstr("damaged.h5")) << at;
    ++flips;
  }
  EXPECT_GT(flips, 300);
}

TEST_F(ModelTest, RejectsATruncatedFile) {
  const std::string whole = file_text(file_);
  for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 97) {
    const auto file = scratch_.write("short.h5", whole.substr(0, length));
    EXPECT_THAT(error_of(Code::data_loss, [&] { Model model(file); }), HasSubstr(file.string())) << length;
  }
  EXPECT_THAT(
      error_of(Code::data_loss, [&] { Model model(scratch_.write("long.h5", whole.substr(0, 99) + whole)); }),
      HasSubstr("long.h5"));
}

TEST_F(ModelTest, RejectsAnIndexThatIsNestedTooDeeply) {
  const std::string whole = file_text(file_);
  const std::string magic = whole.substr(whole.rfind("capstan-model"));
  const std::string index = "{\"format\":\"capstan-model\",\"version\":" + std::string(200'000, '[') +
                            std::string(200'000, ']') + "}";
  const auto file =
      scratch_.write("deep.h5", index + fmt::format("{:016x}", index.size()) + checksum_of(index) + magic);
  const std::string error = error_of(Code::data_loss, [&] { Model model(file); });
  EXPECT_THAT(error, HasSubstr(file.string()));
  EXPECT_THAT(error, HasSubstr("200001"));
}

TEST_F(ModelTest, RejectsFilesThatAreNotModels) {
  error_of(Code::not_found, [&] { Model model(scratch_.path() / "nowhere.h5"); });
  error_of(Code::invalid_argument, [&] { Model model(scratch_.path()); });
  const auto part = scratch_.path() / "run" / checkpoint_name(12) / part_file_name(0, 3);
  EXPECT_THAT(error_of(Code::data_loss, [&] { Model model(part); }), HasSubstr(part.string()));
  EXPECT_FALSE(Model::is_one(part));
  EXPECT_TRUE(Model::is_one(file_));
}

TEST_F(ModelTest, ReadersKeepTheOldFileWhenItIsReplaced) {
  const Model before(file_);
  CheckpointDirectory directory(scratch_.path() / "run");
  save(directory, 12, sample_arrays(80), 1);
  export_to(file_);
  expect_rows(before.lookup<float>("entities/embedding", std::vector<std::int64_t>{3}), "entities/embedding",
              {3});
  arrays_ = sample_arrays(80);
  const Model after(file_);
  expect_rows(after.lookup<float>("entities/embedding", std::vector<std::int64_t>{3}), "entities/embedding",
              {3});
}

TEST(StoredModel, OfVersion1IsRead) {
  const TemporaryDirectory scratch;
  unpack_sample("model_v1", scratch.path());
  const Model model(scratch.path() / "model_v1.h5");
  model.verify();
  EXPECT_EQ(model.step(), 12);
  EXPECT_EQ(model.user_state(), "null") << "this file was written before the member existed";
  EXPECT_THAT(model.variables(), ElementsAre("brain", "entities/embedding", "ids"));
  EXPECT_THAT(model.lookup<float>("entities/embedding", std::vector<std::int64_t>{2, 0}).values,
              ElementsAre(2.0F, 2.5F, 0.0F, 0.5F));
  EXPECT_THAT(model.read<std::int64_t>("ids").values, ElementsAre(7, -(std::int64_t{1} << 40)));
  EXPECT_EQ(static_cast<float>(model.read<bfloat16>("brain").values[1]), -2.5F);
}

TEST_F(ModelTest, SeveralThreadsReadConcurrently) {
  const Model model(file_);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::int64_t i = 0; i < 500; ++i) {
        const std::vector<std::int64_t> ids{(i * 7 + thread) % 101};
        expect_rows(model.lookup<float>("entities/embedding", ids), "entities/embedding", ids);
        if (i % 50 == 0) expect_rows(model.read_rows<std::int64_t>("counts", 4, 1), "counts", {4});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace capstan::io
