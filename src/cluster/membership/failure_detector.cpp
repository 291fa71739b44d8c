// failure_detector.cpp -- five in the time that a rank may be silent.
#include "cluster/membership/failure_detector.hpp"

#include <algorithm>

namespace capstan::cluster {

std::chrono::milliseconds FailureDetector::period() const noexcept {
  return on() ? std::max(timeout_ / 5, std::chrono::milliseconds(1)) : std::chrono::milliseconds(0);
}

void FailureDetector::heard(int rank, Clock::time_point now) {
  if (!gone_.contains(rank)) heard_[rank] = now;
}

void FailureDetector::forget(int rank) {
  heard_.erase(rank);
  gone_.insert(rank);
}

std::vector<int> FailureDetector::silent(Clock::time_point now) {
  std::vector<int> ranks;
  if (!on() || now < looked_ + period()) return ranks;
  const auto since_look = now - looked_;
  looked_ = now;
  if (since_look > 2 * period()) {
    for (auto& [rank, at] : heard_) at = std::min(now, at + (since_look - period()));
  }
  for (const auto& [rank, at] : heard_) {
    if (now - at >= timeout_ - period()) ranks.push_back(rank);
  }
  for (const int rank : ranks) forget(rank);
  return ranks;
}

std::chrono::milliseconds FailureDetector::until_look(Clock::time_point now) const {
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::max(looked_ + period() - now, Clock::duration::zero()));
}

}  // namespace capstan::cluster
