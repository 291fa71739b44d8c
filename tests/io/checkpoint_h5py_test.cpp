// checkpoint_h5py_test.cpp -- Python with h5py reads the master as it is.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>

#include "checkpoint_sample.hpp"
#include "temporary_folder.hpp"

namespace capstan::io {
namespace {

/// What tests/io/read_master.py prints about `master`; skips the test where there is no h5py.
int run_python(const std::filesystem::path& master, const std::filesystem::path& output) {
  const std::string command = std::string(CAPSTAN_PYTHON) + " " + CAPSTAN_SOURCE_DIR +
                              "/tests/io/read_master.py " + master.string() + " > " + output.string();
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr int kNoH5py = 77;

class H5py : public ::testing::TestWithParam<int> {};

TEST_P(H5py, SeesWholeArrays) {
  const TemporaryFolder folder;
  const std::vector<SampleArray> arrays{make_array<float>("entities/embedding", "value", {5, 2}, 0),
                                        make_array<float>("entities/embedding", "accumulator", {5, 2}, 1),
                                        make_array<double>("w", "value", {3}, 2),
                                        make_array<std::int64_t>("n", "value", {7}, 3)};
  CheckpointDirectory directory(folder.path());
  const auto saved = save(directory, 12, arrays, GetParam());
  const int code = run_python(saved / "checkpoint.h5", folder.path() / "out");
  if (code == kNoH5py) GTEST_SKIP() << CAPSTAN_PYTHON << " has no h5py (Debian: python3-h5py)";
  ASSERT_EQ(code, 0);
  const std::string steps = std::to_string(1000 + GetParam() - 1);
  EXPECT_EQ(file_text(folder.path() / "out"),
            "format capstan-checkpoint 1 12\n"
            "variables/entities/embedding float32 Adagrad(learning_rate=0.1) " +
                steps +
                "\n"
                "variables/entities/embedding/slots/accumulator float32 [5, 2] 100001 100002 100003 100004 "
                "100005 100006 "
                "100007 100008 100009 100010\n"
                "variables/entities/embedding/value float32 [5, 2] 1 2 3 4 5 6 7 8 9 10\n"
                "variables/n int64 Adagrad(learning_rate=0.1) " +
                steps +
                "\n"
                "variables/n/value int64 [7] 300001 300002 300003 300004 300005 300006 300007\n"
                "variables/w float64 Adagrad(learning_rate=0.1) " +
                steps +
                "\n"
                "variables/w/value float64 [3] 200001 200002 200003\n");
}

INSTANTIATE_TEST_SUITE_P(Ps, H5py, ::testing::Values(1, 2, 3));

TEST(H5py, SeesNoZerosWhereAPartIsMissing) {
  const TemporaryFolder folder;
  CheckpointDirectory directory(folder.path());
  const auto saved =
      save(directory, 1,
           {make_array<double>("w", "value", {3}, 0), make_array<std::int64_t>("n", "value", {2}, 0)}, 2);
  std::filesystem::remove(saved / part_file_name(1, 2));
  const int code = run_python(saved / "checkpoint.h5", folder.path() / "out");
  if (code == kNoH5py) GTEST_SKIP() << CAPSTAN_PYTHON << " has no h5py (Debian: python3-h5py)";
  ASSERT_EQ(code, 0);
  const std::string seen = file_text(folder.path() / "out");
  EXPECT_THAT(seen, ::testing::HasSubstr("w/value float64 [3] 1 2 nan\n"));
  EXPECT_THAT(seen, ::testing::HasSubstr("n/value int64 [2] 1 -9223372036854775808\n"));
}

}  // namespace
}  // namespace capstan::io
