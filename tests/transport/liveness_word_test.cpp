// liveness_word_test.cpp -- the word is alive exactly while its thread runs, however the thread ends.
#include "transport/memory/liveness_word.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace capstan::transport {
namespace {

class LivenessWordTest : public testing::Test {
 protected:
  void SetUp() override {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    word_ = static_cast<std::byte*>(page);
  }
  void TearDown() override { munmap(word_, 4096); }

  std::byte* word_ = nullptr;
};

TEST_F(LivenessWordTest, IsAliveFromConstructorToDestructor) {
  EXPECT_FALSE(LivenessWord::alive(word_));
  {
    const LivenessWord liveness_word(word_);
    EXPECT_TRUE(LivenessWord::alive(word_));
  }
  EXPECT_FALSE(LivenessWord::alive(word_));
}

TEST_F(LivenessWordTest, IsDeadAfterItsProcessIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const LivenessWord liveness_word(word_);
    if (::write(ready[1], "x", 1) == 1) pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(LivenessWord::alive(word_));
  kill(child, SIGSTOP);
  EXPECT_TRUE(LivenessWord::alive(word_)) << "a stopped process is not dead";
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(LivenessWord::alive(word_));
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace capstan::transport
