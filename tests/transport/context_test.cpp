// context_test.cpp -- UCX's log, and its memory, in a process that uses Capstan.
#include "transport/ucx/context.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

#include "transport/ucx/fabric.hpp"

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
  ucs_log_component_config_t component{UCS_LOG_LEVEL_WARN, "TEST", ""};
  ucs_log_dispatch("/somewhere/sock.c", 325, "connect", UCS_LOG_LEVEL_WARN, &component, "port %d was refused",
                   7);
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
  // By dlsym: the linker would copy the variable into this program, with the size that it has in the UCX of
  // the build. A newer UCX has a larger one, and would write over the program's memory.
  auto* const options = static_cast<ucs_global_opts_t*>(dlsym(RTLD_DEFAULT, "ucs_global_opts"));
  ASSERT_NE(options, nullptr);
  std::string name = "stdout";
  char* const before = std::exchange(options->log_file, name.data());
  const Output output = output_of_a_warning();
  options->log_file = before;
  EXPECT_EQ(output.err, "");
}

/// Returns the bytes of POSIX and System V shared memory that this process maps.
std::uint64_t mapped_shared_memory() {
  std::ifstream file("/proc/self/maps");
  std::uint64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find("/dev/shm/") == std::string::npos && line.find("/SYSV") == std::string::npos) continue;
    std::size_t length = 0;
    const std::uint64_t begin = std::stoull(line, &length, 16);
    sum += std::stoull(line.substr(length + 1), nullptr, 16) - begin;
  }
  return sum;
}

TEST(UcxContext, AllocatesFewBuffersForSharedMemoryTransports) {
  const std::uint64_t before = mapped_shared_memory();
  const UcxFabric fabric;
  // By default, UCX allocates 4.2 MiB for each of two transports.
  EXPECT_LT(mapped_shared_memory() - before, 2 << 20);
}

TEST(UcxContext, QueuesAreShortForCapstanOnly) {
  const UcxFabric fabric;
  for (const char* variable : {"UCX_POSIX_FIFO_SIZE", "UCX_SYSV_FIFO_SIZE"})
    EXPECT_EQ(std::getenv(variable), nullptr) << variable;
  const ShortQueues queues;
  EXPECT_STREQ(std::getenv("UCX_POSIX_FIFO_SIZE"), "64");
}

TEST(UcxContext, LengthOfTheUserIsKept) {
  setenv("UCX_POSIX_FIFO_SIZE", "128", 0);
  { const ShortQueues queues; }
  EXPECT_STREQ(std::getenv("UCX_POSIX_FIFO_SIZE"), "128");
  unsetenv("UCX_POSIX_FIFO_SIZE");
}

}  // namespace
}  // namespace capstan::transport
