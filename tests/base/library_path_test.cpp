// library_path_test.cpp -- unit tests contain Capstan; tests/fault/supervised_program_test.py uses
// libcapstan.so.
#include "base/library_path.hpp"

#include <gtest/gtest.h>

namespace capstan {
namespace {

TEST(LibraryPath, IsEmptyInAProgramThatContainsCapstan) { EXPECT_EQ(library_path(), ""); }

}  // namespace
}  // namespace capstan
