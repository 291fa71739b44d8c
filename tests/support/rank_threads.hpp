// rank_threads.hpp -- a whole cluster in one process: each rank is a thread, the test's own is the
// coordinator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capstan/cluster.hpp"
#include "cluster/runtime.hpp"

namespace capstan {

enum class Network { loop, ucx };

/// A rank that serves until the coordinator has gone.
int serve(const std::shared_ptr<cluster::Runtime>& runtime);

struct RankThreadsOptions {
  using Flags = std::vector<std::pair<std::string, std::string>>;
  /// What a rank does; returns its exit code.
  using Life = std::function<int(const std::shared_ptr<cluster::Runtime>&)>;

  int ranks = 4;
  Flags flags = {};
  Network network = Network::loop;
  Life ps = &serve;
  Life worker = ps;
};

/// Declare it before the strategy: its end waits for the ranks, which wait for the strategy's. Ranks must end
/// with 0.
class RankThreads {
 public:
  explicit RankThreads(RankThreadsOptions options);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  /// The coordinator's.
  Cluster cluster() const;
  cluster::Runtime& runtime() const;

 private:
  struct Ranks;
  std::unique_ptr<Ranks> ranks_;
};

}  // namespace capstan
