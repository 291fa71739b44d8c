// checkpoint_crash_test.cpp -- a crash between any two steps of publish leaves a usable checkpoint.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "checkpoint_sample.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

struct Crash {};

/// Returns the names of the steps of a publish that replaces a checkpoint and deletes another.
std::vector<std::string> steps_of_publish() {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path(), 1);
  save(directory, 1, sample_arrays(), 1);
  save(directory, 2, sample_arrays(), 1);
  CheckpointDirectory again(scratch.path(), 0);
  save(again, 1, sample_arrays(), 1);
  std::vector<std::string> steps;
  directory.on_publish_step([&](std::string_view step) { steps.emplace_back(step); });
  save(directory, 2, sample_arrays(), 1);
  return steps;
}

/// Publishes `step` 2 after 1, or 1 over 1 (the only checkpoint), with a crash at `at`; then checks what a
/// new run finds.
void crash_and_recover(const std::string& at, std::int64_t step, bool by_signal) {
  SCOPED_TRACE(at + (step == 1 ? " while replacing" : "") + (by_signal ? " by SIGKILL" : ""));
  const TemporaryDirectory scratch;
  const auto before = sample_arrays(1), after = sample_arrays(50);
  CheckpointDirectory directory(scratch.path(), 1);
  save(directory, 1, before, 2);
  bool crashed = false;
  directory.on_publish_step([&](std::string_view next) {
    if (next != at) return;
    crashed = true;
    if (by_signal) ::kill(::getpid(), SIGKILL);
    throw Crash{};
  });
  if (by_signal) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      save(directory, step, after, 3);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    crashed = WIFSIGNALED(status);
  } else {
    try {
      save(directory, step, after, 3);
    } catch (const Crash&) {
    }
  }
  const auto found = open_latest(scratch.path());
  EXPECT_TRUE(found.damaged.empty());
  const std::set<std::string> too_early{"check", "master", "manifest", "sync", "rename", "rename over"};
  const bool is_new = !crashed || !too_early.contains(at);
  EXPECT_EQ(found.reader.step(), is_new ? step : 1);
  expect_holds(found.reader, is_new ? after : before);

  // A new run continues in the same directory.
  CheckpointDirectory next_run(scratch.path(), 1);
  save(next_run, 3, after, 2);
  const auto later = open_latest(scratch.path());
  EXPECT_EQ(later.reader.step(), 3);
  EXPECT_TRUE(later.damaged.empty());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path()))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("checkpoint-00000003", "latest"))
      << "stale files remain";
}

TEST(PublishCrash, RunsTheExpectedSteps) {
  EXPECT_THAT(steps_of_publish(), ::testing::ElementsAre("check", "master", "manifest", "sync", "rename",
                                                         "rename over", "sync directory", "latest",
                                                         "rename latest", "delete", "delete one", "done"));
}

TEST(PublishCrash, BetweenAnyTwoStepsLeavesAUsableCheckpoint) {
  for (const std::string& at : steps_of_publish()) {
    crash_and_recover(at, 2, false);
    crash_and_recover(at, 1, false);
  }
}

TEST(PublishCrash, AKilledProcessLeavesAUsableCheckpoint) {
  for (const std::string& at : steps_of_publish()) {
    crash_and_recover(at, 2, true);
    crash_and_recover(at, 1, true);
  }
}

TEST(PublishCrash, IgnoresAPartlyDeletedCheckpoint) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  save(directory, 1, sample_arrays(), 1);
  const auto doomed = save(directory, 2, sample_arrays(), 1);
  std::filesystem::rename(doomed, scratch.path() / "checkpoint-00000002.deleted");
  std::filesystem::remove(scratch.path() / "checkpoint-00000002.deleted" / "manifest.json");
  const auto found = open_latest(scratch.path());
  EXPECT_EQ(found.reader.step(), 1);
  EXPECT_TRUE(found.damaged.empty());
}

TEST(PublishCrash, ACrashOfTheFirstSaveLeavesNoCheckpoint) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  directory.on_publish_step([](std::string_view next) {
    if (next == "rename") throw Crash{};
  });
  EXPECT_THROW(save(directory, 1, sample_arrays(), 2), Crash);
  error_of(Code::not_found, [&] { open_latest(scratch.path()); });
}

}  // namespace
}  // namespace capstan::io
