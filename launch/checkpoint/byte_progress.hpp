// byte_progress.hpp -- a progress bar for a known number of bytes.
#pragma once

#include <cstdint>
#include <iostream>
#include <string_view>

#include "io/bytes_done.hpp"
#include "launch/progress.hpp"

namespace capstan::launch::checkpoint {

/// Displayed for the lifetime of the object: a bar on a terminal, else a line every 5 s. `label` must outlive
/// it.
class ByteProgress {
 public:
  ByteProgress(std::string_view label, std::uint64_t total) : progress_(std::cerr, options(label)) {
    state_.total = static_cast<std::int64_t>(total);
  }
  ~ByteProgress() { progress_.clear(); }
  ByteProgress(const ByteProgress&) = delete;
  ByteProgress& operator=(const ByteProgress&) = delete;

  /// Callback that adds bytes. The object must outlive it.
  io::BytesDone done() {
    return [this](std::uint64_t bytes) {
      state_.done += static_cast<std::int64_t>(bytes);
      progress_.update(state_);
    };
  }

 private:
  static ProgressOptions options(std::string_view label) {
    ProgressOptions options = ProgressOptions::for_standard_error();
    options.unit = "B";
    options.label = label;
    return options;
  }

  Progress progress_;
  ProgressState state_;
};

}  // namespace capstan::launch::checkpoint
