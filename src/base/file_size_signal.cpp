// file_size_signal.cpp -- blocks SIGXFSZ in one thread by its signal mask.
#include "base/file_size_signal.hpp"

#include <cerrno>
#include <ctime>

namespace capstan {
namespace {

sigset_t only_file_size_signal() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

}  // namespace

FileSizeSignalBlock::FileSizeSignalBlock() noexcept {
  sigset_t pending;
  was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
  const sigset_t set = only_file_size_signal();
  sigset_t before;
  was_blocked_ = pthread_sigmask(SIG_BLOCK, &set, &before) == 0 && sigismember(&before, SIGXFSZ) == 1;
}

FileSizeSignalBlock::~FileSizeSignalBlock() {
  const int error = errno;
  const sigset_t set = only_file_size_signal();
  if (!was_pending_) {
    const timespec now{};
    (void)sigtimedwait(&set, nullptr, &now);
  }
  if (!was_blocked_) (void)pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  errno = error;
}

}  // namespace capstan
