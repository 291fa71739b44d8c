// ps_watch.cpp -- five looks in the time that a ps may be silent.
#include "cluster/membership/ps_watch.hpp"

#include <algorithm>
#include <utility>

namespace capstan::cluster {

bool PsWatch::heard(int rank, bool busy, Clock::time_point now) {
  Watched& ps = watched_[rank];
  ps.heard = now;
  ps.busy = busy;
  return std::exchange(ps.silent, false);
}

std::vector<int> PsWatch::silent(Clock::time_point now) {
  std::vector<int> ranks;
  const auto period = timeout_ / 5;
  if (timeout_.count() == 0 || now < looked_ + period) return ranks;
  const auto since_look = now - std::exchange(looked_, now);
  for (auto& [rank, ps] : watched_) {
    if (since_look > 2 * period) ps.heard = std::min(now, ps.heard + (since_look - period));
    if (ps.busy || ps.silent || now - ps.heard < timeout_ - period) continue;
    ps.silent = true;
    ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace capstan::cluster
