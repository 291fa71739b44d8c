// library_path_test.cpp -- the library path of a program that contains Capstan, as unit tests do.
// tests/multi/refusal_test.py covers programs that load libcapstan.so.
#include "base/library_path.hpp"

#include <gtest/gtest.h>

namespace capstan {
namespace {

TEST(LibraryPath, IsEmptyInAProgramThatContainsCapstan) { EXPECT_EQ(library_path(), ""); }

}  // namespace
}  // namespace capstan
