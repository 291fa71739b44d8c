// directory_lock_test.cpp -- other processes are excluded until the holder releases the lock or dies.
#include "io/directory_lock.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "io/file.hpp"
#include "support/asleep.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// A process that holds the lock until it is killed.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& directory) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto lock = DirectoryLock::take(directory, milliseconds(0));
      (void)!::write(ends[1], "x", 1);
      while (true) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(DirectoryLock, NamesTheHolderUntilItIsKilled) {
  const TemporaryDirectory directory;
  Holder holder(directory.path());
  const auto text = error_of(Code::failed_precondition,
                             [&] { (void)DirectoryLock::take(directory.path(), milliseconds(100)); });
  EXPECT_THAT(text, NamesAll({directory.path().string(), "process " + std::to_string(holder.pid())}));
  EXPECT_THAT(text, HasSubstr(" since 20"));
  holder.kill();
  EXPECT_NE(DirectoryLock::take(directory.path(), milliseconds(0)), nullptr);
}

TEST(DirectoryLock, WaitsForAHolderThatIsAboutToExit) {
  const TemporaryDirectory directory;
  Holder holder(directory.path());
  const std::jthread killer([&, waiting = ::gettid()] {
    EXPECT_TRUE(wait_until_asleep(waiting));
    ::kill(holder.pid(), SIGKILL);
  });
  EXPECT_NE(DirectoryLock::take(directory.path(), std::chrono::seconds(20)), nullptr);
}

TEST(DirectoryLock, IsSharedWithinAProcess) {
  const TemporaryDirectory directory;
  auto first = DirectoryLock::take(directory.path(), milliseconds(0));
  const auto second = DirectoryLock::take(directory.path() / ".", milliseconds(0));
  EXPECT_EQ(first, second);
  const TemporaryDirectory other;
  EXPECT_NE(DirectoryLock::take(other.path(), milliseconds(0)), first);
}

TEST(DirectoryLock, DetectsThatItsDirectoryWasReplacedAndLockedByAnotherJob) {
  const TemporaryDirectory parent;
  const auto directory = parent.path() / "run";
  std::filesystem::create_directory(directory);
  const auto first = DirectoryLock::take(directory, milliseconds(0));
  EXPECT_TRUE(first->is_current());
  EXPECT_NO_THROW(first->require_current());
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(first->is_current());
  std::filesystem::create_directory(directory);
  EXPECT_FALSE(first->is_current());
  {
    const Holder another(directory);
    EXPECT_FALSE(first->is_current());
    EXPECT_THAT(error_of(Code::failed_precondition, [&] { first->require_current(); }),
                HasSubstr(directory.string()));
    (void)error_of(Code::failed_precondition, [&] { (void)DirectoryLock::take(directory, milliseconds(0)); });
  }
  const auto again = DirectoryLock::take(directory, milliseconds(0));
  EXPECT_NE(again, first);
  EXPECT_TRUE(again->is_current());
}

TEST(DirectoryLock, RejectsALinkInPlaceOfItsFile) {
  const TemporaryDirectory directory;
  const auto target = directory.write("target", "text"), file = directory.path() / DirectoryLock::kFile;
  const auto refuse = [&] {
    const auto text = error_of(Code::permission_denied,
                               [&] { (void)DirectoryLock::take(directory.path(), milliseconds(0)); });
    EXPECT_THAT(text, HasSubstr(file.string()));
    EXPECT_EQ(read_whole_file(target), "text");
  };
  std::filesystem::create_symlink(target, file);
  refuse();
  std::filesystem::remove(file);
  std::filesystem::create_hard_link(target, file);
  refuse();
}

TEST(DirectoryLock, ReleasesTheLockOnDestruction) {
  const TemporaryDirectory directory;
  DirectoryLock::take(directory.path(), milliseconds(0)).reset();
  const Holder holder(directory.path());
  EXPECT_GT(holder.pid(), 0);
}

}  // namespace
}  // namespace capstan::io
