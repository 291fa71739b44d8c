// handles_test.cpp -- errors of UCX calls, and owners of UCX handles.
// Tests: src/transport/ucx/handles.hpp
#include "transport/ucx/handles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/expect_error.hpp"

namespace capstan::transport {
namespace {

TEST(UcxCheck, AcceptsSuccess) { EXPECT_NO_THROW(check(UCS_OK, "ucp_init")); }

TEST(UcxCheck, NamesTheCallAndTheStatus) {
  const std::string message = error_of(Code::internal, [] { check(UCS_ERR_NO_DEVICE, "ucp_init"); });
  EXPECT_THAT(message, testing::HasSubstr("ucp_init"));
  EXPECT_THAT(message, testing::HasSubstr(ucs_status_string(UCS_ERR_NO_DEVICE)));
}

TEST(UcxHandles, MoveLeavesTheSourceEmpty) {
  ucp_config_t* raw = nullptr;
  check(ucp_config_read(nullptr, nullptr, &raw), "ucp_config_read");
  Handle<ConfigTraits> config(raw);
  const Handle<ConfigTraits> moved = std::move(config);
  EXPECT_EQ(config.get(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.get(), raw);
}

}  // namespace
}  // namespace capstan::transport
