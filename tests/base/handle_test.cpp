// handle_test.cpp -- a C handle is freed exactly once.
#include "base/handle.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace capstan {
namespace {

std::vector<int> freed;

struct IntTraits {
  using type = int;
  static type none() noexcept { return -1; }
  static void free(type h) noexcept { freed.push_back(h); }
};
using IntHandle = Handle<IntTraits>;

class HandleTest : public testing::Test {
 protected:
  void SetUp() override { freed.clear(); }
};

/// Returns a new handle through a pointer, as C libraries do.
void open_number(int number, int* out) { *out = number; }

TEST_F(HandleTest, IsEmptyByDefault) {
  {
    const IntHandle handle;
    EXPECT_FALSE(handle);
    EXPECT_EQ(handle.get(), -1);
  }
  EXPECT_TRUE(freed.empty());
}

TEST_F(HandleTest, FreesOnDestruction) {
  {
    const IntHandle handle(3);
    EXPECT_TRUE(handle);
    EXPECT_EQ(handle.get(), 3);
  }
  EXPECT_EQ(freed, std::vector<int>{3});
}

TEST_F(HandleTest, ZeroIsValidIfTheEmptyValueIsAnother) {
  { const IntHandle handle(0); }
  EXPECT_EQ(freed, std::vector<int>{0});
}

TEST_F(HandleTest, MovingLeavesTheSourceEmpty) {
  {
    IntHandle a(5);
    const IntHandle b(std::move(a));
    EXPECT_FALSE(a);  // NOLINT: tests the moved-from state
    EXPECT_EQ(b.get(), 5);
    EXPECT_TRUE(freed.empty());
  }
  EXPECT_EQ(freed, std::vector<int>{5});
}

TEST_F(HandleTest, AssignmentFreesThePreviousHandle) {
  {
    IntHandle a(1);
    a = IntHandle(2);
    EXPECT_EQ(freed, std::vector<int>{1});
    IntHandle& same = a;
    a = std::move(same);
    EXPECT_EQ(a.get(), 2);
  }
  EXPECT_EQ(freed, (std::vector<int>{1, 2}));
}

TEST_F(HandleTest, ReleaseTransfersOwnership) {
  {
    IntHandle handle(4);
    EXPECT_EQ(handle.release(), 4);
    EXPECT_FALSE(handle);
  }
  EXPECT_TRUE(freed.empty());
}

TEST_F(HandleTest, ResetAndOutFreeThePreviousHandle) {
  {
    IntHandle handle;
    open_number(6, handle.out());
    EXPECT_EQ(handle.get(), 6);
    open_number(7, handle.out());
    EXPECT_EQ(freed, std::vector<int>{6});
    handle.reset(8);
    EXPECT_EQ(freed, (std::vector<int>{6, 7}));
    handle.reset();
    handle.reset();
  }
  EXPECT_EQ(freed, (std::vector<int>{6, 7, 8}));
}

TEST_F(HandleTest, IsAsSmallAsTheRawHandle) { EXPECT_EQ(sizeof(IntHandle), sizeof(int)); }

}  // namespace
}  // namespace capstan
