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
  /// `when` is the value of the setting progress. auto: draws a bar if standard error is a terminal, or a
  /// pipe to a foreground launcher whose standard error is a terminal. on: draws a bar on the controlling
  /// terminal, if there is one. off: prints lines.
  explicit ProgressTerminal(std::string_view when);

  /// The stream for a Progress with `options`.
  std::ostream& stream();
  ProgressOptions options() const;

 private:
  std::ofstream tty_;  // closed: standard error is used
  ProgressOptions options_;
};

/// Finds the first ancestor whose standard error is not a pipe. Returns true if this standard error is the
/// controlling terminal of this process, and the ancestor is in the foreground of the terminal.
bool launcher_has_terminal();

}  // namespace capstan::launch
