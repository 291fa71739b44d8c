// rank_threads.hpp -- a cluster in one process: each rank is a thread, and the test's thread is the
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

/// Serves until the coordinator ends the job.
int serve(const std::shared_ptr<cluster::Runtime>& runtime);

struct RankThreadsOptions {
  using Flags = std::vector<std::pair<std::string, std::string>>;
  /// Main function of a rank; returns its exit code.
  using Main = std::function<int(const std::shared_ptr<cluster::Runtime>&)>;

  int ranks = 4;
  Flags flags = {};
  Network network = Network::loop;
  Main ps = &serve;
  Main worker = ps;
};

/// Declare it before the strategy: the destructor waits until all ranks have ended, which requires that the
/// strategy was destroyed. Every rank must return 0.
class RankThreads {
 public:
  explicit RankThreads(RankThreadsOptions options);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  /// The cluster and the runtime of the coordinator.
  Cluster cluster() const;
  cluster::Runtime& runtime() const;

 private:
  struct Ranks;
  std::unique_ptr<Ranks> ranks_;
};

}  // namespace capstan
