// heartbeat.hpp -- shared memory through which a child tells its agent that it runs, and that the agent must
// not restart it.
#pragma once

#include <chrono>
#include <optional>

#include "base/file_descriptor.hpp"

namespace capstan::cluster {

/// Shared by a process and its agent. All functions do nothing in a process without an agent.
class Heartbeat {
 public:
  using Clock = std::chrono::steady_clock;  // the same in all processes of a host

  /// Creates the shared memory, an unnamed file. Called by the agent before it forks. Throws Error(internal).
  static void share();
  static constexpr const char* kFileName = "capstan-heartbeat";
  /// Returns the descriptor of the file; -1 in a process without an agent.
  static int descriptor() noexcept;
  /// Maps the file in a program that inherited it across exec. Throws Error(internal).
  static void adopt(FileDescriptor file);

  /// Returns true if this process has an agent.
  static bool watched() noexcept;
  /// Sends a heartbeat. The agent kills this process if the next one does not follow within `most_silence`;
  /// 0: never.
  static void beat(std::chrono::milliseconds most_silence) noexcept;
  /// Clears the last heartbeat, so that none is expected. The agent calls it before it starts another child.
  static void pause() noexcept;

  /// Makes the agent not restart this process, however it ends.
  static void forbid_restart() noexcept;
  static bool restart_forbidden() noexcept;

  struct Beat {
    Clock::time_point at;
    std::chrono::milliseconds most_silence;  // until the next one
  };
  /// Returns the last heartbeat; nothing while none is expected.
  static std::optional<Beat> last() noexcept;
};

}  // namespace capstan::cluster
