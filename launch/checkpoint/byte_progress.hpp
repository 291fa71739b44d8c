// byte_progress.hpp -- a progress bar for a known number of bytes.
#pragma once

#include <cstdint>
#include <iostream>
#include <string_view>

#include "io/progress_callback.hpp"
#include "launch/progress.hpp"

namespace capstan::launch::checkpoint {

/// Displays progress until destruction: a bar on a terminal, else a line every 5 s. `label` must outlive the
/// object.
class ByteProgress {
 public:
  ByteProgress(std::string_view label, std::uint64_t total) : progress_(std::cerr, options(label)) {
    state_.total = static_cast<std::int64_t>(total);
  }
  ~ByteProgress() { progress_.clear(); }
  ByteProgress(const ByteProgress&) = delete;
  ByteProgress& operator=(const ByteProgress&) = delete;

  /// Returns a callback that adds the given bytes to the progress. The object must outlive the callback.
  io::ProgressCallback callback() {
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
