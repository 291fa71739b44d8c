// rank_threads.hpp -- a whole cluster in one process: each rank is a thread, the test's own is the
// coordinator.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "capstan/cluster.hpp"
#include "capstan/server.hpp"
#include "cluster/role_map.hpp"
#include "cluster/runtime.hpp"
#include "transport/loop.hpp"
#include "transport/ucx_fabric.hpp"

namespace capstan {

enum class Network { loop, ucx };

struct RankThreadsOptions {
  using Flags = std::vector<std::pair<std::string, std::string>>;
  /// What a rank does; returns its exit code.
  using Life = std::function<int(const std::shared_ptr<cluster::Runtime>&)>;

  int ranks = 4;
  Flags flags = {};
  Network network = Network::loop;
  Life ps = [](const std::shared_ptr<cluster::Runtime>& runtime) { return Server(Cluster(runtime)).join(); };
  Life worker = ps;
};

/// Declare it before the strategy: its end waits for the ranks, which wait for the strategy's. Ranks must end
/// with 0.
class RankThreads {
 public:
  explicit RankThreads(RankThreadsOptions options) {
    Settings settings;
    settings.set_from_flag("heap-slab-bytes", "1MiB");  // tests are small; a slab is zeroed
    for (const auto& [name, value] : options.flags) settings.set_from_flag(name, value);
    auto runtimes = options.network == Network::loop
                        ? cluster::Runtime::as_threads(settings, options.ranks, hub_)
                        : over_ucx(settings, options.ranks);
    coordinator_ = std::move(runtimes[0]);
    codes_.assign(runtimes.size(), 0);
    for (std::size_t rank = 1; rank < runtimes.size(); ++rank) {
      const auto& life = runtimes[rank]->self().role == Role::ps ? options.ps : options.worker;
      // The thread has the only reference: a rank that ends closes its fabrics, as a process would.
      threads_.emplace_back([life, runtime = std::move(runtimes[rank]), &code = codes_[rank]]() mutable {
        log::set_rank_tag(runtime->log_tag());
        try {
          code = life(runtime);
        } catch (const std::exception& error) {
          ADD_FAILURE() << runtime->self().name() << ": " << error.what();
        }
        runtime.reset();
      });
    }
  }
  ~RankThreads() {
    coordinator_.reset();
    threads_.clear();
    for (std::size_t rank = 0; rank < codes_.size(); ++rank) EXPECT_EQ(codes_[rank], 0) << "rank " << rank;
  }
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  /// The coordinator's.
  Cluster cluster() const { return Cluster(coordinator_); }
  cluster::Runtime& runtime() const { return *coordinator_; }

 private:
  static std::vector<std::shared_ptr<cluster::Runtime>> over_ucx(const Settings& settings, int ranks) {
    const std::vector<std::string> hosts(static_cast<std::size_t>(ranks), cluster::host_name());
    const auto places = cluster::map_roles(hosts, cluster::RoleRequest::from(settings));
    using Fabrics = std::pair<std::unique_ptr<transport::Fabric>, std::unique_ptr<transport::Fabric>>;
    std::vector<Fabrics> fabrics;
    cluster::Table table;
    for (int rank = 0; rank < ranks; ++rank) {
      const cluster::Place place = places[static_cast<std::size_t>(rank)];
      auto control = std::make_unique<transport::UcxFabric>();
      auto data = cluster::one_fabric(place.role) ? nullptr : std::make_unique<transport::UcxFabric>();
      table.members.push_back({rank, place.role, place.index, hosts[0], 0, control->address(),
                               data ? data->address() : control->address()});
      fabrics.emplace_back(std::move(control), std::move(data));
    }
    std::vector<std::shared_ptr<cluster::Runtime>> runtimes;
    for (auto& [control, data] : fabrics) {
      table.rank = static_cast<int>(runtimes.size());
      runtimes.push_back(
          std::make_shared<cluster::Runtime>(settings, table, std::move(control), std::move(data)));
    }
    return runtimes;
  }

  transport::LoopHub hub_;
  std::shared_ptr<cluster::Runtime> coordinator_;
  std::vector<int> codes_;
  std::vector<std::jthread> threads_;
};

}  // namespace capstan
