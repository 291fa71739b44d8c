// trace_file.cpp -- formats events as lines of JSON.
#include "io/events/trace_file.hpp"

#include <fmt/format.h>

#include <atomic>
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

double microseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) * 1e-3; }

std::string text_of(TraceFile::Arguments arguments) {
  std::string text;
  for (const auto& [name, value] : arguments)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", json_text(name), value);
  return "\"args\":{" + text + "}}\n";
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
  add(begin, fmt::format("\"ph\":\"X\",\"dur\":{:.3f},\"cat\":\"{}\",\"name\":{},{}",
                         microseconds(end - begin), category, json_text(name), text_of(arguments)));
}

void TraceFile::instant(std::string_view category, std::string_view name, Arguments arguments) {
  add(Clock::now(), fmt::format("\"ph\":\"i\",\"s\":\"p\",\"cat\":\"{}\",\"name\":{},{}", category,
                                json_text(name), text_of(arguments)));
}

void TraceFile::add(Clock::time_point at, std::string_view rest) {
  const std::string line = fmt::format("{{\"ts\":{:.3f},\"pid\":{},\"tid\":{},{}",
                                       microseconds(at.time_since_epoch()), rank_, thread_number(), rest);
  const std::lock_guard lock(mutex_);
  if (events_ == kMaxEvents) {
    log::warn("{}: trace limit of {} events reached; later events are dropped", file_.path().string(),
              kMaxEvents);
  }
  if (++events_ > kMaxEvents) return;
  lines_ += line;
  const auto now = Clock::now();
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
