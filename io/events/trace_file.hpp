// trace_file.hpp -- what one process did when, in the JSON that chrome://tracing and ui.perfetto.dev read.
//
// A line is an event: {"ts":<microseconds of this host's steady clock>,"pid":<rank>,"tid":<thread>,...}.
// merge_traces() makes one timeline of the files of all ranks.
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

/// Any thread. Lines are kept back for a second, or 64 KiB; a process that is killed loses those. After so
/// many events that the file has some hundred megabytes the rest is dropped, and said to be.
class TraceFile {
 public:
  using Clock = std::chrono::steady_clock;
  using Arguments = std::initializer_list<std::pair<std::string_view, std::int64_t>>;

  /// `process`: its name in the timeline, "worker 1 (rank 2 on node17)".
  TraceFile(std::filesystem::path path, int rank, std::string_view process);
  ~TraceFile() { flush(); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// Something that took from `begin` until `end`, on the calling thread.
  void span(std::string_view category, std::string_view name, Clock::time_point begin, Clock::time_point end,
            Arguments arguments = {});
  /// Something that happened just now.
  void instant(std::string_view category, std::string_view name, Arguments arguments = {});
  void flush();

 private:
  void add(Clock::time_point at, std::string_view rest);

  std::mutex mutex_;
  AppendFile file_;
  int rank_;
  std::string lines_;
  std::uint64_t events_ = 0;
  Clock::time_point flushed_ = Clock::now();
};

}  // namespace capstan::io
