// function_name_test.cpp -- extracts the name of a function from the compiler's text.
#include "coordinator/scheduling/function_name.hpp"

#include <gtest/gtest.h>

namespace capstan::coordinator {
namespace {

TEST(ShortName, IsTheFunctionOfATemplateArgument) {
  EXPECT_EQ(short_name("void capstan::detail::name() [with auto fn = train_step; int n = 3]"), "train_step");
  EXPECT_EQ(short_name("auto name() [fn = app::train_step]"), "app::train_step");
}

TEST(ShortName, IsUnchangedWithoutSuchAnArgument) { EXPECT_EQ(short_name("train_step"), "train_step"); }

}  // namespace
}  // namespace capstan::coordinator
