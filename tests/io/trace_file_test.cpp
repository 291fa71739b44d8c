// trace_file_test.cpp -- trace events of several ranks, merged into one timeline.
#include "io/events/trace_file.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "io/events/merge_traces.hpp"
#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"

namespace capstan::io {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

json read_trace(const std::filesystem::path& path) {
  std::ifstream in(path);
  return json::parse(in);
}

json event(const json& trace, const std::string& name) {
  for (const json& one : trace["traceEvents"]) {
    if (one["name"] == name) return one;
  }
  return nullptr;
}

TEST(Trace, MergesRanksOnTheCoordinatorsClock) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "trace");
  const TraceFile::Clock::time_point at{1'000'000ms};
  {
    TraceFile coordinator(directory.path() / "trace" / "rank-00000.json", 0, "coordinator 0 (rank 0 on a)");
    TraceFile worker(directory.path() / "trace" / "rank-00001.json", 1, "worker 0 (rank 1 on b)");
    coordinator.span("checkpoint", "checkpoint", at, at + 5ms, {{"step", 7}});
    // The worker's clock is half a second ahead.
    worker.span("function", "odd \"name\"\n", at + 502ms, at + 503ms, {{"id", 3}, {"again", 0}});
  }
  write_clocks(directory.path() / "trace", {{1, {500'000'000, 1000}}});
  const MergedTrace merged = merge_traces(directory.path());
  EXPECT_EQ(merged.events, 2U);
  EXPECT_EQ(merged.ranks, 2);
  const json trace = read_trace(merged.path);
  const json checkpoint = event(trace, "checkpoint");
  EXPECT_EQ(checkpoint["ts"], 0) << "the first event";
  EXPECT_EQ(checkpoint["dur"], 5000);
  EXPECT_EQ(checkpoint["pid"], 0);
  EXPECT_EQ(checkpoint["args"]["step"], 7);
  const json function = event(trace, "odd \"name\"\n");
  EXPECT_NEAR(function["ts"].get<double>(), 2000, 0.01);
  EXPECT_EQ(function["pid"], 1);
  EXPECT_EQ(event(trace, "process_name")["args"]["name"], "coordinator 0 (rank 0 on a)");
  EXPECT_EQ(read_clocks(directory.path() / "trace").at(1).ahead, 500'000'000);
}

TEST(Trace, WritesNamesAndTimesAsJson) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "rank-00000.json";
  const std::string names[] = {"", "plain ~", "quote \"", "back\\slash", "line\n", "\x7f", "caf\u00e9"};
  {
    TraceFile file(path, 3, "worker");
    TraceFile::Clock::time_point at{1'000'000'007ns};
    for (const std::string& name : names) file.span("call", name, at, at + 5ns, {{"least", INT64_MIN}});
    file.span("call", "long", at, at + 12'345'678ns);
  }
  std::ifstream in(path);
  std::vector<json> spans;
  for (std::string line; std::getline(in, line);) {
    if (const json event = json::parse(line); event["ph"] == "X") spans.push_back(event);
  }
  ASSERT_EQ(spans.size(), std::size(names) + 1);
  for (std::size_t i = 0; i < std::size(names); ++i) {
    EXPECT_EQ(spans[i]["name"], names[i]);
    EXPECT_EQ(spans[i]["args"], (json{{"least", INT64_MIN}}));
  }
  EXPECT_EQ(spans[0]["ts"].get<double>(), 1'000'000.007);
  EXPECT_EQ(spans[0]["dur"].get<double>(), 0.005);
  EXPECT_EQ(spans[0]["pid"], 3);
  EXPECT_EQ(spans.back()["dur"].get<double>(), 12'345.678);
  EXPECT_EQ(spans.back()["args"], json::object());
}

TEST(Trace, SkipsTruncatedLines) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "trace");
  const auto path = directory.path() / "trace" / "rank-00002.json";
  {
    TraceFile ps(path, 2, "ps 0 (rank 2 on a)");
    ps.instant("loss", "whole");
  }
  std::ofstream(path, std::ios::app) << R"({"ts":12.5,"pid":2,"tid":0,"ph":"X","dur)";
  const MergedTrace merged = merge_traces(directory.path());
  EXPECT_EQ(merged.events, 1U);
  EXPECT_EQ(event(read_trace(merged.path), "whole")["ph"], "i");
  EXPECT_EQ(merge_traces(directory.path()).events, 1U) << "a second merge replaces the first";
}

TEST(Trace, HasCompleteLinesOfManyThreads) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "trace");
  {
    TraceFile file(directory.path() / "trace" / "rank-00000.json", 0, "coordinator");
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&file] {
        for (int event = 0; event < 1000; ++event) file.instant("dispatch", "dispatch", {{"event", event}});
      });
    }
  }
  EXPECT_EQ(merge_traces(directory.path()).events, 4000U);
}

TEST(Trace, NamesTheOptionIfThereAreNoTraces) {
  const TemporaryDirectory directory;
  EXPECT_THAT(error_of(Code::not_found, [&] { (void)merge_traces(directory.path()); }),
              testing::AllOf(testing::HasSubstr((directory.path() / "trace").string()),
                             testing::HasSubstr("--run-dir " + directory.path().string())));
}

}  // namespace
}  // namespace capstan::io
