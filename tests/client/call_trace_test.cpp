// call_trace_test.cpp -- one function in eight has spans for its calls and the time between them.
#include "client/call_trace.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/temporary_directory.hpp"

namespace capstan::client {
namespace {

using testing::ElementsAre;

/// Names of the events in a file that one rank has written.
std::vector<std::string> names_in(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == ',') line.pop_back();
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_object() && event.value("cat", "") == "call") names.push_back(event["name"]);
  }
  return names;
}

class CallTraceTest : public testing::Test {
 protected:
  const io::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "rank-00000.json";
  CallTrace trace_;
};

TEST_F(CallTraceTest, TimeBetweenCallsIsCompute) {
  using std::chrono::milliseconds;
  {
    io::TraceFile file(path_, 0, "worker");
    trace_.begin(&file, CallTrace::Clock::now() - milliseconds(2));
    {
      const CallTrace::Span outer(trace_, "lookup");
      { const CallTrace::Span first(trace_, "wait"); }
      const CallTrace::Span second(trace_, "wait");
    }
    trace_.end(CallTrace::Clock::now() + milliseconds(2));
  }
  EXPECT_THAT(names_in(path_), ElementsAre("compute", "wait", "wait", "lookup", "compute"));
}

TEST_F(CallTraceTest, RecordsOneFunctionInEight) {
  {
    io::TraceFile file(path_, 0, "worker");
    for (std::uint64_t i = 0; i <= CallTrace::kOneIn; ++i) {
      const auto now = CallTrace::Clock::now();
      trace_.begin(&file, now);
      const std::string name = "push " + std::to_string(i);
      { const CallTrace::Span span(trace_, name); }
      trace_.end(now);
    }
    const CallTrace::Span outside(trace_, "outside of functions");
  }
  std::vector<std::string> names = names_in(path_);
  std::erase(names, "compute");
  EXPECT_THAT(names, ElementsAre("push 0", "push 8"));
}

TEST_F(CallTraceTest, RecordsNothingWithoutAFile) {
  trace_.begin(nullptr, CallTrace::Clock::now());
  { const CallTrace::Span span(trace_, "push"); }
  trace_.end(CallTrace::Clock::now());
}

}  // namespace
}  // namespace capstan::client
