// heartbeat.hpp -- what a child says to its agent by memory that they share: that its process runs, and that
// no other is to follow.
#pragma once

#include <chrono>
#include <optional>

namespace capstan::cluster {

/// One for each process that has an agent, and for that agent. Without an agent nobody looks, and all of this
/// does nothing.
class Heartbeat {
 public:
  using Clock = std::chrono::steady_clock;  // the same in all processes of a host

  /// In the agent, before it forks. Throws Error.
  static void share();

  /// This process has an agent, which ends the rank's job when the process ends.
  static bool watched() noexcept;
  /// This process runs. Its agent kills it if it does not beat again within `most_silence`; 0: never.
  static void beat(std::chrono::milliseconds most_silence) noexcept;
  /// There will be no more beats, and that means nothing. For the agent: of the next child.
  static void rest() noexcept;

  /// This process is the rank's last: its agent starts none in its place, however it ends.
  static void be_the_last() noexcept;
  static bool was_the_last() noexcept;

  struct Beat {
    Clock::time_point at;
    std::chrono::milliseconds most_silence;  // until the next one
  };
  /// The last beat; nothing while there is none to expect.
  static std::optional<Beat> last() noexcept;
};

}  // namespace capstan::cluster
