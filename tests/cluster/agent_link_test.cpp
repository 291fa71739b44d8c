// agent_link_test.cpp -- the link to an agent, passed to a program by environment and file descriptors.
#include "cluster/supervisor/agent_link.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "capstan/serialize.hpp"
#include "capstan/version.hpp"
#include "cluster/membership/persistent_record.hpp"
#include "cluster/supervisor/agent_pipe.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "support/expect_error.hpp"
#include "support/in_a_process.hpp"

namespace capstan::cluster {
namespace {

using std::chrono::seconds;

auto soon() { return std::chrono::steady_clock::now() + seconds(20); }

bool closes_on_exec(int fd) { return fcntl(fd, F_GETFD) == FD_CLOEXEC; }

/// Passes a link, as the child of an agent does before exec. The descriptors stay open, as across exec.
void pass(AgentLink link) {
  auto* const passed = new AgentLink(std::move(link));  // never freed: the program owns the descriptors
  passed->pass_to_program();
}

std::string passed_value() { return std::getenv(AgentLink::kVariable); }

/// Replaces a field, counted from 0, of the variable.
std::string with_field(std::string value, int number, const std::string& text) {
  std::size_t begin = 0;
  for (int i = 0; i < number; ++i) begin = value.find(':', begin) + 1;
  return value.replace(begin, std::min(value.find(':', begin), value.size()) - begin, text);
}

Table table_with_rank(int rank) {
  Table table;
  table.rank = rank;
  table.restarts = 3;
  table.members = {{0, Role::coordinator, 0, "n0", 1, {}, {}}, {1, Role::worker, 0, "n1", 2, {}, {}}};
  return table;
}

TEST(AgentLink, PassesThePipesOfTheExchangeToAProgram) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    Pipe up = open_pipe();
    Pipe down = open_pipe();
    send_value(down.write_end.get(), StartAnswer{.table = table_with_rank(1)});
    const bool right = in_a_process([&] {
      const int from = down.read_end.get();
      pass(AgentLink(std::move(down.read_end), std::move(up.write_end), nullptr));
      if (!AgentLink::is_passed() || closes_on_exec(from)) return false;
      auto link = AgentLink::adopt();
      if (!link || AgentLink::is_passed() || !closes_on_exec(from)) return false;
      if (link->persistent_memory() || link->restart_number() != 0) return false;
      Hello hello;
      hello.host = "host of the test";
      return link->exchange(hello, seconds(20)).members.at(1).host == "n1";
    });
    return right && receive_value<Hello>(up.read_end.get(), soon(), "the program").host == "host of the test";
  }));
}

TEST(AgentLink, PassesTheErrorOfTheExchangeToAProgram) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    Pipe up = open_pipe();
    Pipe down = open_pipe();
    send_value(down.write_end.get(),
               StartAnswer{.code = Code::deadline_exceeded, .message = "rank 7 is missing"});
    return in_a_process([&] {
      pass(AgentLink(std::move(down.read_end), std::move(up.write_end), nullptr));
      auto link = AgentLink::adopt();
      expect_error_naming(Code::deadline_exceeded, {"rank 7"},
                          [&] { (void)link->exchange({}, seconds(20)); });
      return !testing::Test::HasFailure();
    });
  }));
}

TEST(AgentLink, PassesTheTableAndTheMemoryToARestartedProgram) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    const auto memory = transport::PersistentMemory::create();
    PersistentRecord(memory).write(to_bytes(std::string("from the first process")));
    const bool right = in_a_process([&] {
      pass(AgentLink(table_with_rank(4), memory, 2));
      auto link = AgentLink::adopt();
      if (!link || link->restart_number() != 2 || !link->persistent_memory()) return false;
      const Table table = link->exchange({}, seconds(20));
      Heartbeat::beat(std::chrono::milliseconds(900));
      PersistentRecord record(link->persistent_memory());
      return table.rank == 4 && table.restarts == 3 && table.members.size() == 2 &&
             from_bytes<std::string>(record.read()) == "from the first process";
    });
    const auto last = Heartbeat::last();
    return right && last && last->most_silence == std::chrono::milliseconds(900);
  }));
}

TEST(AgentLink, LocationsOfTheMemoryNameTheFileOfTheAgent) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    const auto memory = transport::PersistentMemory::create();
    const auto location = memory->location(transport::PersistentMemory::kFirstOffset);
    return in_a_process([&] {
      pass(AgentLink(table_with_rank(1), memory, 1));
      const auto adopted = AgentLink::adopt()->persistent_memory()->location(location.offset);
      return adopted.path == location.path && adopted.id == location.id;
    });
  }));
}

TEST(AgentLink, IsAbsentWithoutTheVariable) {
  ASSERT_EQ(std::getenv(AgentLink::kVariable), nullptr);
  EXPECT_FALSE(AgentLink::is_passed());
  EXPECT_FALSE(AgentLink::adopt());
}

/// Passes a valid link and changes the variable; expects adopt() to throw, and to leave all as it is.
void expect_refused(const std::function<std::string(const std::string&)>& change,
                    const std::string& parameter) {
  EXPECT_TRUE(in_a_process([&] {
    Heartbeat::share();
    return in_a_process([&] {
      pass(AgentLink(table_with_rank(1), transport::PersistentMemory::create(), 1));
      const std::string value = change(passed_value());
      setenv(AgentLink::kVariable, value.c_str(), 1);
      const int heartbeat = Heartbeat::descriptor();
      expect_error_naming(Code::failed_precondition, {AgentLink::kVariable, parameter, "unset"},
                          [] { (void)AgentLink::adopt(); });
      return !testing::Test::HasFailure() && passed_value() == value && fcntl(heartbeat, F_GETFD) == 0;
    });
  })) << "expected an error that names "
      << parameter;
}

TEST(AgentLink, RefusesAMalformedVariable) {
  expect_refused([](const std::string&) { return ""; }, CAPSTAN_VERSION_STRING);
  expect_refused([](const std::string& value) { return with_field(value, 0, "9.9.9"); }, "9.9.9");
  expect_refused([](const std::string& value) { return with_field(value, 3, "x"); }, "malformed");
  expect_refused([](const std::string& value) { return with_field(value, 3, ""); }, "malformed");
  expect_refused([](const std::string& value) { return with_field(value, 3, "99999999999"); }, "malformed");
  expect_refused([](const std::string& value) { return value.substr(0, value.rfind(':')); }, "malformed");
  expect_refused([](const std::string& value) { return value + ":1"; }, "malformed");
}

TEST(AgentLink, RefusesTheVariableOfAnotherProcess) {
  expect_refused([](const std::string& value) { return with_field(value, 1, "1"); }, "parent");
  // A process that inherits the variable from the program.
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    return in_a_process([] {
      pass(AgentLink(table_with_rank(1), nullptr, 1));
      return in_a_process([] {
        expect_error_naming(Code::failed_precondition, {AgentLink::kVariable, std::to_string(getppid())},
                            [] { (void)AgentLink::adopt(); });
        return !testing::Test::HasFailure();
      });
    });
  }));
}

TEST(AgentLink, RefusesDescriptorsOfOtherFiles) {
  expect_refused([](const std::string& value) { return with_field(value, 3, "1000"); }, "1000");
  expect_refused([](const std::string& value) { return with_field(value, 3, "0"); }, "capstan-heartbeat");
  expect_refused([](const std::string& value) { return with_field(value, 4, "0"); }, "capstan-ps");
  expect_refused([](const std::string& value) { return with_field(value, 7, "-1"); }, "capstan-table");
  // The first start of a program has pipes.
  expect_refused([](const std::string& value) { return with_field(value, 2, "0"); }, "pipe:");
}

}  // namespace
}  // namespace capstan::cluster
