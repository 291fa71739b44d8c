// context_test.cpp -- destinations of UCX's log in a process that uses Capstan.
#include "transport/ucx/context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>

#include <string>
#include <utility>

namespace capstan::transport {
namespace {

using testing::HasSubstr;

struct Output {
  std::string out;
  std::string err;
};

Output output_of_a_warning() {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ucs_log_dispatch("/somewhere/sock.c", 325, "connect", UCS_LOG_LEVEL_WARN, &ucs_global_opts.log_component,
                   "port %d was refused", 7);
  ucs_log_flush();
  return {testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(UcxContext, PrintsWarningsToStandardErrorInUcxFormat) {
  (void)open_context();
  const Output output = output_of_a_warning();
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.err, HasSubstr("sock.c:325"));
  EXPECT_THAT(output.err, HasSubstr(" UCX  WARN  port 7 was refused\n"));
}

TEST(UcxContext, LeavesUcxLogFileToUcx) {
  (void)open_context();
  std::string name = "stdout";
  char* const before = std::exchange(ucs_global_opts.log_file, name.data());
  const Output output = output_of_a_warning();
  ucs_global_opts.log_file = before;
  EXPECT_EQ(output.err, "");
}

}  // namespace
}  // namespace capstan::transport
