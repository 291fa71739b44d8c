// new_checkpoint_test.cpp -- a checkpoint in a directory that is replaced while it is written.
#include "launch/checkpoint/new_checkpoint.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"

namespace capstan::launch::checkpoint {
namespace {

TEST(NewCheckpoint, DoesNotTouchADirectoryThatReplacedItsOwn) {
  const io::TemporaryDirectory parent;
  const auto run = parent.path() / "run", unfinished = run / "checkpoint-00000001.tmp";
  constexpr std::array<float, 3> kValues{1, 2, 3};
  {
    NewCheckpoint checkpoint(run, 1, /*force=*/false);
    checkpoint.write_part(0, 1, {{.variable = "w", .shape = {3}, .rows = 3, .data = kValues.data()}});
    std::filesystem::rename(run, parent.path() / "aside");
    std::filesystem::copy(parent.path() / "aside", run, std::filesystem::copy_options::recursive);
    (void)error_of(Code::failed_precondition, [&] { (void)checkpoint.publish({}); });
  }
  EXPECT_TRUE(std::filesystem::exists(unfinished));
  EXPECT_FALSE(std::filesystem::exists(run / "checkpoint-00000001"));
}

TEST(NewCheckpoint, DestructorRemovesUnpublishedFiles) {
  const io::TemporaryDirectory parent;
  const auto run = parent.path() / "run";
  { const NewCheckpoint checkpoint(run, 1, /*force=*/false); }
  EXPECT_FALSE(std::filesystem::exists(run));
}

}  // namespace
}  // namespace capstan::launch::checkpoint
