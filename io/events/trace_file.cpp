// trace_file.cpp -- formats events as lines of JSON.
#include "io/events/trace_file.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/log.hpp"

namespace capstan::io {
namespace {

constexpr std::uint64_t kMaxEvents = 2'000'000;
constexpr std::size_t kFlushLinesBytes = 64 * 1024;
constexpr std::chrono::seconds kFlushEvery{1};

/// Number of the calling thread, in order of first use.
int thread_number() {
  static std::atomic<int> next{0};
  thread_local const int number = next++;
  return number;
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append(fmt::memory_buffer& line, std::string_view text) {
  line.append(text.data(), text.data() + text.size());
}

/// Appends a JSON string. Names are usually plain, and copying them is much faster than a JSON library.
void append_json(fmt::memory_buffer& line, std::string_view text) {
  const bool plain =
      std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (!plain) return append(line, json_text(text));
  line.push_back('"');
  append(line, text);
  line.push_back('"');
}

/// Appends microseconds with three decimals. Integers are much faster than a double. A negative time counts
/// as 0.
void append_microseconds(fmt::memory_buffer& line, std::chrono::nanoseconds time) {
  const std::int64_t ns = std::max<std::int64_t>(time.count(), 0);
  fmt::format_to(fmt::appender(line), FMT_COMPILE("{}.{:03}"), ns / 1000, ns % 1000);
}

}  // namespace

TraceFile::TraceFile(std::filesystem::path path, int rank, std::string_view process)
    : file_(std::move(path)), rank_(rank) {
  const auto add_metadata = [&](std::string_view name, const std::string& arguments) {
    lines_ += fmt::format("{{\"ts\":0,\"pid\":{},\"tid\":0,\"ph\":\"M\",\"name\":\"{}\",\"args\":{{{}}}}}\n",
                          rank, name, arguments);
  };
  add_metadata("process_name", "\"name\":" + json_text(process));
  add_metadata("process_sort_index", fmt::format("\"sort_index\":{}", rank));
}

void TraceFile::span(std::string_view category, std::string_view name, Clock::time_point begin,
                     Clock::time_point end, Arguments arguments) {
  fmt::memory_buffer phase;
  append(phase, R"("X","dur":)");
  append_microseconds(phase, end - begin);
  add(begin, end, {phase.data(), phase.size()}, category, name, arguments);
}

void TraceFile::instant(std::string_view category, std::string_view name, Arguments arguments) {
  const auto now = Clock::now();
  add(now, now, R"("i","s":"p")", category, name, arguments);
}

/// Adds an event that began at `at` and is recorded at `now`. `phase` is the value of "ph", and may be
/// followed by other members.
void TraceFile::add(Clock::time_point at, Clock::time_point now, std::string_view phase,
                    std::string_view category, std::string_view name, Arguments arguments) {
  fmt::memory_buffer line;
  append(line, R"({"ts":)");
  append_microseconds(line, at.time_since_epoch());
  fmt::format_to(fmt::appender(line), FMT_COMPILE(R"(,"pid":{},"tid":{},"ph":{},"cat":"{}","name":)"), rank_,
                 thread_number(), phase, category);
  append_json(line, name);
  append(line, R"(,"args":{)");
  for (const auto& [argument, value] : arguments) {
    if (line.data()[line.size() - 1] != '{') line.push_back(',');
    append_json(line, argument);
    fmt::format_to(fmt::appender(line), FMT_COMPILE(":{}"), value);
  }
  append(line, "}}\n");
  const std::lock_guard lock(mutex_);
  if (events_ == kMaxEvents) {
    log::warn("{}: trace limit of {} events reached; later events are dropped", file_.path().string(),
              kMaxEvents);
  }
  if (++events_ > kMaxEvents) return;
  lines_.append(line.data(), line.size());
  if (lines_.size() < kFlushLinesBytes && now < flushed_ + kFlushEvery) return;
  flushed_ = now;
  (void)file_.append(lines_);
  lines_.clear();
}

void TraceFile::flush() {
  const std::lock_guard lock(mutex_);
  if (!lines_.empty()) (void)file_.append(lines_);
  lines_.clear();
}

}  // namespace capstan::io
