// pair_plan.cpp -- selects ring neighbors, representative pairs and rounds.
#include "launch/doctor/pair_plan.hpp"

#include <algorithm>

namespace capstan::launch::doctor {
namespace {

/// Up to this number of members, all pairs are tested.
constexpr int kAllPairsLimit = 8;

bool share_a_rank(const Pair& a, const Pair& b) {
  return a.first == b.first || a.first == b.second || a.second == b.first || a.second == b.second;
}

}  // namespace

std::vector<int> ring_neighbors(int self, int count) {
  std::vector<int> others;
  for (int distance = 1; distance<count; distance = count> kAllPairsLimit ? 2 * distance : distance + 1)
    others.push_back((self + distance) % count);
  return others;
}

std::vector<int> connect_targets(int self, int count) {
  std::vector<int> higher;
  const auto meets = [count](int one, int other) {
    const std::vector<int> met = ring_neighbors(one, count);
    return std::find(met.begin(), met.end(), other) != met.end();
  };
  for (int other = self + 1; other < count; ++other) {
    if (meets(self, other) || meets(other, self)) higher.push_back(other);
  }
  return higher;
}

std::vector<Pair> representative_pairs(const std::vector<std::string>& hosts) {
  std::vector<std::pair<std::string, std::vector<int>>> ranks_by_host;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    auto host = std::find_if(ranks_by_host.begin(), ranks_by_host.end(),
                             [&](const auto& one) { return one.first == hosts[rank]; });
    if (host == ranks_by_host.end()) host = ranks_by_host.insert(ranks_by_host.end(), {hosts[rank], {}});
    host->second.push_back(static_cast<int>(rank));
  }
  std::vector<Pair> pairs;
  for (const auto& [host, ranks] : ranks_by_host) {
    if (ranks.size() > 1) pairs.emplace_back(ranks[0], ranks[1]);
  }
  // A ring over the hosts; two hosts make a single pair.
  const std::size_t count = ranks_by_host.size();
  for (std::size_t i = 0; i + 1 < count || (i + 1 == count && count > 2); ++i)
    pairs.emplace_back(std::minmax(ranks_by_host[i].second[0], ranks_by_host[(i + 1) % count].second[0]));
  return pairs;
}

std::vector<std::vector<Pair>> disjoint_rounds(const std::vector<Pair>& pairs) {
  std::vector<std::vector<Pair>> rounds;
  for (const Pair& pair : pairs) {
    const auto free = std::find_if(rounds.begin(), rounds.end(), [&](const std::vector<Pair>& round) {
      return std::none_of(round.begin(), round.end(),
                          [&](const Pair& other) { return share_a_rank(pair, other); });
    });
    if (free != rounds.end()) {
      free->push_back(pair);
    } else {
      rounds.push_back({pair});
    }
  }
  return rounds;
}

}  // namespace capstan::launch::doctor
