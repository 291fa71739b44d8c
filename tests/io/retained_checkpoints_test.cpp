// retained_checkpoints_test.cpp -- one expired checkpoint is retained per interval, across runs.
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>

#include "checkpoint_sample.hpp"
#include "io/hdf5/retained_checkpoints.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;
using std::chrono::minutes;
using testing::ElementsAre;
using testing::HasSubstr;

class RetainedCheckpointsTest : public testing::Test {
 protected:
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> steps;
    for (const auto& entry : list_checkpoints(scratch_.path())) steps.push_back(entry.step);
    return steps;
  }
  /// Saves a checkpoint and sets its time to `since_begin` after `begin_`.
  void save_at(CheckpointDirectory& directory, std::int64_t step, minutes since_begin) const {
    // save() reads only the times of older checkpoints, so the new one's time can be set afterwards.
    const fs::path path = save(directory, step, {make_array<float>("w", "value", {3}, 1)}, 1);
    fs::last_write_time(path / "manifest.json", begin_ + since_begin);
  }

  void expect_ignored(const std::string& kept_json) const {
    scratch_.write("kept.json", kept_json);
    CheckpointDirectory directory(scratch_.path(), 1, 1);
    directory.check_writable();
    save_at(directory, 1, minutes(90));
    save_at(directory, 2, minutes(100));
    EXPECT_THAT(steps(), ElementsAre(1, 2));
  }

  TemporaryDirectory scratch_;
  fs::file_time_type begin_ = fs::file_time_type::clock::now();
};

TEST_F(RetainedCheckpointsTest, RetainsOneCheckpointPerInterval) {
  for (std::int64_t step = 0; step < 12; ++step) {
    CheckpointDirectory directory(scratch_.path(), 2, 2);  // a new run each time
    directory.check_writable();
    save_at(directory, step, minutes(45 * step));
  }
  // The first save two hours or more after the start is step 3 (135 min). The first one two hours or more
  // after step 3 is step 6 (270 min), and then step 9 (405 min). Steps 10 and 11 are the two newest.
  EXPECT_THAT(steps(), ElementsAre(3, 6, 9, 10, 11));
  EXPECT_THAT(file_text(scratch_.path() / "kept.json"), HasSubstr("\"checkpoint-00000003\""));
}

TEST_F(RetainedCheckpointsTest, RetainedCheckpointsStayWhenTheOptionIsTurnedOff) {
  CheckpointDirectory directory(scratch_.path(), 1, 1);
  directory.check_writable();
  save_at(directory, 1, minutes(90));
  save_at(directory, 2, minutes(100));
  EXPECT_THAT(steps(), ElementsAre(1, 2));
  CheckpointDirectory without(scratch_.path(), 1);
  save_at(without, 3, minutes(400));
  save_at(without, 4, minutes(500));
  EXPECT_THAT(steps(), ElementsAre(1, 4));
}

TEST_F(RetainedCheckpointsTest, RetainsNoneWithoutTheOption) {
  CheckpointDirectory directory(scratch_.path(), 1);
  directory.check_writable();
  for (std::int64_t step = 1; step < 4; ++step) save_at(directory, step, minutes(600 * step));
  EXPECT_THAT(steps(), ElementsAre(3));
  EXPECT_FALSE(fs::exists(scratch_.path() / "kept.json"));
}

TEST_F(RetainedCheckpointsTest, IgnoresAMalformedFile) { expect_ignored("{\"kept\": 3"); }

TEST_F(RetainedCheckpointsTest, IgnoresAFileThatIsNestedTooDeeply) {
  // "last" is in the future, so no checkpoint would be retained if the file were used.
  expect_ignored(R"({"kept": [], "last": 1e12, "more": )" + std::string(200'000, '[') +
                 std::string(200'000, ']') + "}");
}

TEST_F(RetainedCheckpointsTest, RejectsInvalidIntervals) {
  for (const double hours : {-1.0, std::nan("")})
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { CheckpointDirectory(scratch_.path(), 1, hours); }),
                HasSubstr("keep_every_n_hours is "));
}

}  // namespace
}  // namespace capstan::io
