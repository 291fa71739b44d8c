// trace_file.hpp -- trace events of one process, in the JSON of chrome://tracing and ui.perfetto.dev.
//
// Each line is an event: {"ts":<microseconds of this host's steady clock>,"pid":<rank>,"tid":<thread>,...}.
// merge_traces() merges the files of all ranks into one timeline.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "io/append_file.hpp"

namespace capstan::io {

/// Any thread. Buffers lines for up to a second or 64 KiB; a process that is killed loses them. Drops events
/// after the first 2 million (some hundred megabytes) and logs one warning.
class TraceFile {
 public:
  using Clock = std::chrono::steady_clock;
  using Arguments = std::initializer_list<std::pair<std::string_view, std::int64_t>>;

  /// `process`: name of the process in the timeline, such as "worker 1 (rank 2 on node17)".
  TraceFile(std::filesystem::path path, int rank, std::string_view process);
  ~TraceFile() { flush(); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// Records an operation of the calling thread that ran from `begin` to `end`, which is not before `begin`.
  void span(std::string_view category, std::string_view name, Clock::time_point begin, Clock::time_point end,
            Arguments arguments = {});
  /// Records an event at the current time.
  void instant(std::string_view category, std::string_view name, Arguments arguments = {});
  void flush();

 private:
  void add(Clock::time_point at, Clock::time_point now, std::string_view phase, std::string_view category,
           std::string_view name, Arguments arguments);

  std::mutex mutex_;
  AppendFile file_;
  int rank_;
  std::string lines_;
  std::uint64_t events_ = 0;
  Clock::time_point flushed_ = Clock::now();
};

}  // namespace capstan::io
