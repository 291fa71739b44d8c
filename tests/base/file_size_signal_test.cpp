// file_size_signal_test.cpp -- a file size limit becomes EFBIG, and the program keeps its signal disposition.
#include "base/file_size_signal.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "support/in_a_process.hpp"

namespace capstan {
namespace {

constexpr rlim_t kFileSizeLimit = 4096;

/// Writes beyond the file size limit of this process, and returns the resulting errno, or 0.
int errno_beyond_file_size_limit() {
  const rlimit limit{kFileSizeLimit, kFileSizeLimit};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 0;
  std::FILE* const file = std::tmpfile();
  errno = 0;
  return pwrite(fileno(file), "x", 1, kFileSizeLimit) == 1 ? 0 : errno;
}

bool file_size_signal_is_blocked() {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, SIGXFSZ) == 1;
}

TEST(FileSizeSignalBlock, TurnsTheSignalIntoAnError) {
  EXPECT_TRUE(in_a_process([] {
    signal(SIGXFSZ, SIG_DFL);
    {
      const FileSizeSignalBlock block;
      if (errno_beyond_file_size_limit() != EFBIG) return false;
    }
    return errno == EFBIG && signal(SIGXFSZ, SIG_DFL) == SIG_DFL && !file_size_signal_is_blocked();
  }));
}

TEST(FileSizeSignalBlock, HasNoEffectAfterItsScope) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_DFL);
    { const FileSizeSignalBlock block; }
    (void)errno_beyond_file_size_limit();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGXFSZ);
}

TEST(FileSizeSignalBlock, KeepsTheSignalBlockedAndPendingIfItWas) {
  EXPECT_TRUE(in_a_process([] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    raise(SIGXFSZ);
    { const FileSizeSignalBlock block; }
    sigset_t pending;
    sigpending(&pending);
    return file_size_signal_is_blocked() && sigismember(&pending, SIGXFSZ) == 1;
  }));
}

}  // namespace
}  // namespace capstan
