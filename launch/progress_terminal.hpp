// progress_terminal.hpp -- the terminal of a job that a launcher started, for its progress bar.
#pragma once

#include <fstream>
#include <iosfwd>
#include <string_view>

#include "launch/progress.hpp"

namespace capstan::launch {

/// Launchers connect standard error of a rank to a pipe, so a bar is drawn on the controlling terminal
/// instead. Log lines still go to standard error.
class ProgressTerminal {
 public:
  /// `when` is the setting progress. auto: standard error is a terminal, or it is a pipe to a launcher in the
  /// foreground whose own standard error is one. on: the controlling terminal, if there is one. off: lines.
  explicit ProgressTerminal(std::string_view when);

  /// The stream for a Progress with `options`.
  std::ostream& stream();
  ProgressOptions options() const;

 private:
  std::ofstream tty_;  // closed: standard error is used
  ProgressOptions options_;
};

/// Returns true if the first ancestor of this process whose standard error is no pipe has the controlling
/// terminal of this process there, and is in its foreground.
bool launcher_has_terminal();

}  // namespace capstan::launch
