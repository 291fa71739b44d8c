// roll_call.hpp -- which ranks are present at the start, and a report of the missing ones.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace capstan::cluster {

/// Used by one thread. Prints nothing: the caller prints.
class RollCall {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPeriod{10};

  /// All are missing initially. `names`: "rank 3", "ps 1 at n4:2222".
  RollCall(std::vector<std::string> names, Clock::time_point now, Clock::duration period = kPeriod);

  /// State of a missing rank: "no contact" initially, "its program has not come yet".
  void know(std::size_t one, std::string name, std::string state);
  void arrive(std::size_t one);
  bool is_here(std::size_t one) const { return all_.at(one).here; }
  bool complete() const noexcept { return missing_ == 0; }

  /// Returns "3 of 8: ps 1 at n4:2222 (no contact), ...", with at most eight names.
  std::string missing() const;
  /// Returns "waiting for 3 of 8: ..." once per period while a rank is missing.
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
