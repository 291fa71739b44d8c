// work.hpp -- a progress bar for reading and writing so many bytes.
#pragma once

#include <cstdint>
#include <iostream>
#include <string_view>

#include "io/bytes_done.hpp"
#include "launch/progress.hpp"

namespace capstan::launch::checkpoint {

/// Shown while it lives: a bar on a terminal, a line every few seconds elsewhere. `label` is a literal.
class Work {
 public:
  Work(std::string_view label, std::uint64_t total) : progress_(std::cerr, options(label)) {
    state_.total = static_cast<std::int64_t>(total);
  }
  ~Work() { progress_.clear(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// To be given to what does the work; must not outlive this.
  io::BytesDone done() {
    return [this](std::uint64_t bytes) {
      state_.done += static_cast<std::int64_t>(bytes);
      progress_.update(state_);
    };
  }

 private:
  static ProgressOptions options(std::string_view label) {
    ProgressOptions options = ProgressOptions::for_standard_error();
    options.unit = "bytes";
    options.label = label;
    return options;
  }

  Progress progress_;
  ProgressState state_;
};

}  // namespace capstan::launch::checkpoint
