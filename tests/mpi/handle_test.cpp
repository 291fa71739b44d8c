// handle_test.cpp -- a failed MPI call throws Error.
#include "mpi/handle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace capstan::mpi {
namespace {

TEST(MpiCheck, AcceptsSuccess) { EXPECT_NO_THROW(check(MPI_SUCCESS, "MPI_Send")); }

TEST(MpiCheck, NamesTheCallThatFailed) {
  const std::string message = error_of(Code::internal, [] { check(MPI_ERR_RANK, "MPI_Send"); });
  EXPECT_THAT(message, testing::HasSubstr("MPI_Send"));
}

}  // namespace
}  // namespace capstan::mpi
