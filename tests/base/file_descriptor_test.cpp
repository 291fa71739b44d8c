// file_descriptor_test.cpp -- a descriptor has one owner, which closes it once.
#include "base/file_descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace capstan {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }
int open_something() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(FileDescriptor, ClosesOnDestruction) {
  const int raw = open_something();
  ASSERT_GE(raw, 0);
  {
    const FileDescriptor owner(raw);
    EXPECT_EQ(owner.get(), raw);
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(FileDescriptor, ResetClosesThePreviousDescriptor) {
  const int first = open_something();
  const int second = open_something();
  FileDescriptor owner(first);
  owner.reset(second);
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(is_open(second));
}

TEST(FileDescriptor, ClosesOnceAfterAMove) {
  const int raw = open_something();
  FileDescriptor first(raw);
  {
    const FileDescriptor second(std::move(first));
    EXPECT_EQ(second.get(), raw);
  }
  EXPECT_FALSE(is_open(raw));
  const int reused = open_something();
  EXPECT_EQ(reused, raw) << "open returns the lowest free number";
  first.reset();
  EXPECT_TRUE(is_open(reused)) << "a moved-from owner closes nothing";
  ::close(reused);
}

TEST(FileDescriptor, ReleaseLeavesTheDescriptorOpen) {
  const int raw = open_something();
  EXPECT_EQ(FileDescriptor(raw).release(), raw);
  EXPECT_TRUE(is_open(raw));
  ::close(raw);
}

TEST(FileDescriptor, IsEmptyByDefault) {
  EXPECT_FALSE(FileDescriptor());
  EXPECT_TRUE(FileDescriptor(open_something()));
}

}  // namespace
}  // namespace capstan
