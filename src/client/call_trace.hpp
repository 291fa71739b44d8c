// call_trace.hpp -- what a function does, as spans of the trace: its calls, and the time between them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "io/events/trace_file.hpp"

namespace capstan::client {

/// Records one function in kOneIn, because its spans take about a microsecond, and at most kMaxSpans. Spans
/// have the category "call" and the name of the call; "compute" is the time since the function's previous
/// call or its start. A call may contain others, such as "wait". Used by the client's thread.
class CallTrace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kOneIn = 8;
  /// A quarter of the events of a TraceFile, so that later functions still have theirs.
  static constexpr std::uint64_t kMaxSpans = 500'000;

  /// Starts a function. Without a file nothing is recorded.
  void begin(io::TraceFile* file, Clock::time_point now) noexcept {
    file_ = file != nullptr && functions_++ % kOneIn == 0 && spans_ < kMaxSpans ? file : nullptr;
    idle_since_ = now;
  }
  void end(Clock::time_point now) {
    if (file_ != nullptr) record("compute", idle_since_, now);
    file_ = nullptr;
  }

  /// Records the call during which it exists. Not for a call during which the function begins or ends.
  class Span {
   public:
    /// `name` outlives the span.
    Span(CallTrace& trace, std::string_view name)
        : trace_(trace.file_ != nullptr ? &trace : nullptr), name_(name) {
      if (trace_ == nullptr) return;
      begin_ = Clock::now();
      if (trace_->depth_++ == 0) trace_->record("compute", trace_->idle_since_, begin_);
    }
    ~Span() {
      if (trace_ == nullptr) return;
      const auto now = Clock::now();
      trace_->record(name_, begin_, now);
      if (--trace_->depth_ == 0) trace_->idle_since_ = now;
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    CallTrace* trace_;
    std::string_view name_;
    Clock::time_point begin_{};
  };

 private:
  void record(std::string_view name, Clock::time_point begin, Clock::time_point end) {
    file_->span("call", name, begin, end);
    ++spans_;
  }

  io::TraceFile* file_ = nullptr;  // null unless a recorded function runs
  std::uint64_t functions_ = 0;
  std::uint64_t spans_ = 0;
  int depth_ = 0;  // calls that are in progress
  Clock::time_point idle_since_{};
};

}  // namespace capstan::client
