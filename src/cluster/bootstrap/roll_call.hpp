// roll_call.hpp -- tracks which ranks have joined at the start, and reports the missing ones.
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

  /// All ranks are missing initially. `names`: "rank 3", "ps 1 at n4:2222".
  RollCall(std::vector<std::string> names, Clock::time_point now, Clock::duration period = kPeriod);

  /// Sets the name and the state of a missing rank, such as "its program has not joined yet"; the state is
  /// "no contact" initially.
  void set_state(std::size_t rank, std::string name, std::string state);
  void joined(std::size_t rank);
  bool has_joined(std::size_t rank) const { return all_.at(rank).joined; }
  bool complete() const noexcept { return missing_ == 0; }

  /// Returns "3 of 8: ps 1 at n4:2222 (no contact), ...", with at most eight names.
  std::string missing() const;
  /// Returns "waiting for 3 of 8: ..." once per period while a rank is missing.
  std::optional<std::string> due(Clock::time_point now);

 private:
  struct Entry {
    std::string name;
    std::string state;
    bool joined = false;
  };
  std::vector<Entry> all_;
  std::size_t missing_;
  Clock::time_point next_;
  Clock::duration period_;
};

}  // namespace capstan::cluster
