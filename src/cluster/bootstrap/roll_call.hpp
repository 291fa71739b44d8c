// roll_call.hpp -- who has come to the start, and what is said of those who have not.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace capstan::cluster {

/// Of one thread. Says nothing by itself: who calls it prints.
class RollCall {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPeriod{10};

  /// Nobody is there yet. `names`: "rank 3", "ps 1 at n4:2222".
  RollCall(std::vector<std::string> names, Clock::time_point now, Clock::duration period = kPeriod);

  /// What is known of one who is missing: "no contact" at first, "its program has not come yet".
  void know(std::size_t one, std::string name, std::string state);
  void arrive(std::size_t one);
  bool is_here(std::size_t one) const { return all_.at(one).here; }
  bool complete() const noexcept { return missing_ == 0; }

  /// "3 of 8: ps 1 at n4:2222 (no contact), ...", at most eight of them by name.
  std::string missing() const;
  /// "waiting for 3 of 8: ...", once a period while somebody is missing.
  std::optional<std::string> due(Clock::time_point now);

 private:
  struct One {
    std::string name;
    std::string state;
    bool here = false;
  };
  std::vector<One> all_;
  std::size_t missing_;
  Clock::time_point next_;
  Clock::duration period_;
};

}  // namespace capstan::cluster
