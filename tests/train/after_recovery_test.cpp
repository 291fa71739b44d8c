// after_recovery_test.cpp -- training options after a first start and after a restart of the coordinator.
#include "train/after_recovery.hpp"

#include <gtest/gtest.h>

#include <string>

#include "capstan/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"
#include "transport/memory/persistent_memory.hpp"

namespace capstan {
namespace {

struct TrainingOptions {
  std::string checkpoint_dir;
  bool resume = false;
  int epochs = 3;
};

class AfterRecovery : public testing::Test {
 protected:
  void recover() { ranks_.runtime().load_record(transport::PersistentMemory::create(), 1); }
  TrainingOptions options_after(const TrainingOptions& options) {
    return after_recovery(ranks_.cluster(), options);
  }

  RankThreads ranks_{{.ranks = 3, .flags = {{"ps", "1"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster()};  // its destructor ends the ranks
};

TEST_F(AfterRecovery, KeepsOptionsOnFirstStart) {
  for (const bool resume : {false, true}) {
    for (const char* checkpoint_dir : {"", "/checkpoints"}) {
      const TrainingOptions options = options_after({checkpoint_dir, resume});
      EXPECT_EQ(options.resume, resume);
      EXPECT_EQ(options.checkpoint_dir, checkpoint_dir);
    }
  }
}

TEST_F(AfterRecovery, ResumesAfterCoordinatorRestart) {
  recover();
  const TrainingOptions options = options_after({.checkpoint_dir = "/checkpoints", .epochs = 7});
  EXPECT_TRUE(options.resume);
  EXPECT_EQ(options.checkpoint_dir, "/checkpoints");
  EXPECT_EQ(options.epochs, 7);
}

TEST_F(AfterRecovery, RejectsRestartWithoutCheckpoints) {
  recover();
  for (const bool resume : {false, true}) {
    const std::string error =
        error_of(Code::failed_precondition, [&] { options_after({.checkpoint_dir = "", .resume = resume}); });
    EXPECT_NE(error.find("--checkpoint-dir"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace capstan
