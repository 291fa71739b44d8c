// failure_detector.cpp -- the states of a watched rank.
#include "cluster/membership/failure_detector.hpp"

namespace capstan::cluster {

bool FailureDetector::heard(int rank, Clock::time_point now, bool busy) {
  Watched& watched = ranks_[rank];
  const bool was_suspected = watched.suspected;
  watched = {.suspected = false, .busy = busy, .heard = now};
  return was_suspected;
}

std::vector<int> FailureDetector::check(Clock::time_point now) {
  std::vector<int> suspected;
  if (!on() || now < last_check_ + period_) return suspected;
  const auto since_last_check = now - last_check_;
  last_check_ = now;
  for (auto& [rank, watched] : ranks_) {
    if (watched.suspected) continue;
    if (since_last_check > 2 * period_)
      watched.heard = std::min(now, watched.heard + (since_last_check - period_));
    if (watched.busy || now - watched.heard < timeout_ - period_) continue;
    watched.suspected = true;
    suspected.push_back(rank);
  }
  return suspected;
}

FailureDetector::Time FailureDetector::until_next_check(Clock::time_point now) const {
  return std::chrono::ceil<Time>(std::max(last_check_ + period_ - now, Clock::duration::zero()));
}

}  // namespace capstan::cluster
