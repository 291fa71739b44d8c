// deep_json_test.cpp -- JSON that would overflow the stack is rejected when it is written and when it is
// read.
#include <gmock/gmock.h>

#include "base/json.hpp"
#include "checkpoint_sample.hpp"
#include "io/checksum.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

using ::testing::HasSubstr;

std::string nested_arrays(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

class DeepJson : public ::testing::Test {
 protected:
  TemporaryDirectory scratch_;
  CheckpointDirectory directory_{scratch_.path()};
};

TEST_F(DeepJson, RejectsDeepUserStateAtSave) {
  const std::string deep = nested_arrays(200'000);
  const auto expect_rejected = [&](const PublishOptions& options) {
    const auto reports = write_parts(directory_.begin(1), sample_arrays(1), 1);
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { directory_.publish(1, reports, options); }),
                HasSubstr("200000"));
  };
  expect_rejected({.user_state = deep});
  expect_rejected({.settings = "{\"a\":" + nested_arrays(199'999) + "}"});
  expect_rejected({.positions = {{"splits", deep}}});
}

TEST_F(DeepJson, MaximallyDeepUserStateRoundTrips) {
  std::size_t depth = kMaxJsonDepth;
  const auto saved = [&] {
    try {
      return save(directory_, 1, sample_arrays(1), 1,
                  {.user_state = nested_arrays(depth), .positions = {{"splits", nested_arrays(depth)}}});
    } catch (const Error&) {
      return std::filesystem::path();
    }
  };
  while (saved().empty()) --depth;
  ASSERT_GT(depth, kMaxJsonDepth / 2);
  const CheckpointReader reader(directory_.path() / checkpoint_name(1));
  EXPECT_EQ(reader.user_state(), nested_arrays(depth));
}

TEST_F(DeepJson, ReportsADeepManifestAsDamaged) {
  const auto newest = save(directory_, 1, sample_arrays(1), 1);
  const std::string manifest =
      R"({"format":"capstan-checkpoint","version":1,"base":{"checkpoint":"checkpoint-00000000",)"
      R"("manifest_xxh3":""},"user_state":)" +
      nested_arrays(200'000) + "}";
  std::ofstream(newest / kManifestFile) << manifest;
  std::ofstream(newest / kManifestSumFile) << checksum_of(manifest) << "\n";
  const std::string error = error_of(Code::data_loss, [&] { CheckpointReader reader(newest); });
  EXPECT_THAT(error, HasSubstr((newest / kManifestFile).string()));
  EXPECT_THAT(error, HasSubstr("200001"));
  EXPECT_FALSE(base_of(newest));
}

}  // namespace
}  // namespace capstan::io
