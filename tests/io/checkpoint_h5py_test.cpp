// checkpoint_h5py_test.cpp -- h5py reads the master.
// Tests: io/hdf5/hdf5_layout.cpp
// Tests: io/hdf5/master.cpp
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>

#include "checkpoint_sample.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

/// Writes the output of tests/io/read_master.py for `master` to `output`; returns its exit code, which is
/// kNoH5py if h5py is missing.
int run_python(const std::filesystem::path& master, const std::filesystem::path& output) {
  const std::string command = std::string(CAPSTAN_PYTHON) + " " + CAPSTAN_SOURCE_DIR +
                              "/tests/io/read_master.py " + master.string() + " > " + output.string();
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr int kNoH5py = 77;

template <class Bits>
SampleArray bytes_of(const std::string& name, DType dtype, const std::vector<Bits>& bits) {
  SampleArray array{name, "value", dtype, {bits.size()}, std::vector<char>(bits.size() * sizeof(Bits))};
  std::memcpy(array.bytes.data(), bits.data(), array.bytes.size());
  return array;
}

class H5py : public ::testing::TestWithParam<int> {};

TEST_P(H5py, ReadsCompleteArrays) {
  const TemporaryDirectory scratch;
  const std::vector<SampleArray> arrays{
      make_array<float>("entities/embedding", "value", {5, 2}, 0),
      make_array<float>("entities/embedding", "accumulator", {5, 2}, 1),
      make_array<double>("w", "value", {3}, 2),
      make_array<std::int64_t>("n", "value", {7}, 3),
      make_array<std::int32_t>("deep", "value", {5, 1, 2}, 4),
      bytes_of<std::uint16_t>("half", DType::float16, {0x3C00, 0xC000, 0x3555}),
      bytes_of<std::uint16_t>("brain", DType::bfloat16, {0x3F80, 0xC000, 0x3EAB}),
      bytes_of<std::uint8_t>("flags", DType::boolean, {1, 0, 1})};
  CheckpointDirectory directory(scratch.path());
  const auto saved = save(directory, 12, arrays, GetParam());
  const int code = run_python(saved / "checkpoint.h5", scratch.path() / "out");
  if (code == kNoH5py) GTEST_SKIP() << CAPSTAN_PYTHON << " has no h5py (Debian: python3-h5py)";
  ASSERT_EQ(code, 0);
  const std::string of = " Adagrad(learning_rate=0.1) " + std::to_string(1000 + GetParam() - 1) + "\n";
  EXPECT_EQ(file_text(scratch.path() / "out"),
            "format capstan-checkpoint 1 12\n"
            "variables/brain bfloat16" +
                of +
                "variables/brain/value float32 [3] 1 -2 0.333984\n"
                "variables/deep int32" +
                of +
                "variables/deep/value int32 [5, 1, 2] 400001 400002 400003 400004 400005 400006 400007 "
                "400008 400009 "
                "400010\n"
                "variables/entities/embedding float32" +
                of +
                "variables/entities/embedding/slots/accumulator float32 [5, 2] 100001 100002 100003 100004 "
                "100005 100006 "
                "100007 100008 100009 100010\n"
                "variables/entities/embedding/value float32 [5, 2] 1 2 3 4 5 6 7 8 9 10\n"
                "variables/flags bool" +
                of +
                "variables/flags/value bool [3] True False True\n"
                "variables/half float16" +
                of +
                "variables/half/value float16 [3] 1 -2 0.333252\n"
                "variables/n int64" +
                of +
                "variables/n/value int64 [7] 300001 300002 300003 300004 300005 300006 300007\n"
                "variables/w float64" +
                of + "variables/w/value float64 [3] 200001 200002 200003\n");
}

INSTANTIATE_TEST_SUITE_P(Ps, H5py, ::testing::Values(1, 2, 3));

TEST(H5py, ReadsFillValuesWhereAPartIsMissing) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  const auto saved =
      save(directory, 1,
           {make_array<double>("w", "value", {3}, 0), make_array<std::int64_t>("n", "value", {2}, 0)}, 2);
  std::filesystem::remove(saved / part_file_name(1, 2));
  const int code = run_python(saved / "checkpoint.h5", scratch.path() / "out");
  if (code == kNoH5py) GTEST_SKIP() << CAPSTAN_PYTHON << " has no h5py (Debian: python3-h5py)";
  ASSERT_EQ(code, 0);
  const std::string printed = file_text(scratch.path() / "out");
  EXPECT_THAT(printed, ::testing::HasSubstr("w/value float64 [3] 1 2 nan\n"));
  EXPECT_THAT(printed, ::testing::HasSubstr("n/value int64 [2] 1 -9223372036854775808\n"));
}

/// Large enough for O_DIRECT writes where the file system supports them; arrays of the other tests are not.
TEST(H5py, ReadsEveryByteOfLargeArrays) {
  const TemporaryDirectory scratch;
  const std::vector<SampleArray> arrays{
      make_array<float>("a", "value", {9001, 65}, 0), make_array<std::int64_t>("few", "value", {3}, 1),
      make_array<double>("large rows", "value", {3, 200'000}, 2),
      make_array<float>("rows", "m", {8192, 64}, 3), make_array<float>("rows", "value", {8192, 64}, 4)};
  CheckpointDirectory directory(scratch.path());
  const auto saved = save(directory, 1, arrays, 1);
  const CheckpointReader reader(saved);
  reader.verify();
  expect_holds(reader, arrays);
  const auto script = scratch.write("read.py", R"(
import sys
try:
    import h5py
except ImportError:
    sys.exit(77)
with h5py.File(sys.argv[1], "r") as file, open(sys.argv[2], "wb") as out:
    for name in sys.argv[3:]:
        out.write(file["variables/" + name][...].tobytes())
)");
  const auto out = scratch.path() / "bytes";
  const std::string command = std::string(CAPSTAN_PYTHON) + " " + script.string() + " " +
                              (saved / "checkpoint.h5").string() + " " + out.string() +
                              " a/value few/value 'large rows/value' rows/slots/m rows/value";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoH5py) GTEST_SKIP() << CAPSTAN_PYTHON << " has no h5py (Debian: python3-h5py)";
  ASSERT_EQ(WEXITSTATUS(status), 0);
  std::string expected;
  for (const SampleArray& array : arrays) expected.append(array.bytes.data(), array.bytes.size());
  EXPECT_TRUE(file_text(out) == expected);
}

}  // namespace
}  // namespace capstan::io
