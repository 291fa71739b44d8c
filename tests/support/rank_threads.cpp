// rank_threads.cpp -- see rank_threads.hpp. Compiled once for all tests, since it takes long to compile.
#include "support/rank_threads.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <thread>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "capstan/cluster.hpp"
#include "cluster/roles/role_map.hpp"
#include "transport/loop/loop.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan {
namespace {

std::vector<std::shared_ptr<cluster::Runtime>> over_ucx(const Settings& settings, int ranks) {
  const std::vector<std::string> hosts(static_cast<std::size_t>(ranks), cluster::host_name());
  const auto assignments = cluster::map_roles(hosts, cluster::RoleRequest::from(settings));
  using Fabrics = std::pair<std::unique_ptr<transport::Fabric>, std::unique_ptr<transport::Fabric>>;
  std::vector<Fabrics> fabrics;
  cluster::Table table;
  table.secret = transport::JobSecret::random();
  for (int rank = 0; rank < ranks; ++rank) {
    const cluster::RoleAssignment assigned = assignments[static_cast<std::size_t>(rank)];
    auto control = std::make_unique<transport::UcxFabric>();
    auto data = cluster::one_fabric(assigned.role) ? nullptr : std::make_unique<transport::UcxFabric>();
    table.members.push_back({rank, assigned.role, assigned.index, hosts[0], 0, control->address(),
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

}  // namespace

int serve(const std::shared_ptr<cluster::Runtime>& runtime) { return Server(Cluster(runtime)).join(); }

struct RankThreads::Ranks {
  transport::LoopHub hub;
  std::shared_ptr<cluster::Runtime> coordinator;
  std::vector<int> codes;
  std::vector<std::jthread> threads;
};

RankThreads::RankThreads(RankThreadsOptions options) : ranks_(std::make_unique<Ranks>()) {
  Settings settings;
  settings.set_from_flag("heap-slab-bytes", "1MiB");  // tests are small; a slab is zeroed
  for (const auto& [name, value] : options.flags) settings.set_from_flag(name, value);
  auto runtimes = options.network == Network::loop
                      ? cluster::Runtime::as_threads(settings, options.ranks, ranks_->hub)
                      : over_ucx(settings, options.ranks);
  ranks_->coordinator = std::move(runtimes[0]);
  ranks_->codes.assign(runtimes.size(), 0);
  for (std::size_t rank = 1; rank < runtimes.size(); ++rank) {
    const auto& main_function = runtimes[rank]->self().role == Role::ps ? options.ps : options.worker;
    // The thread owns the only reference, so a rank that ends closes its fabrics, as a process does.
    ranks_->threads.emplace_back(
        [main_function, runtime = std::move(runtimes[rank]), &code = ranks_->codes[rank]]() mutable {
          log::set_rank_tag(runtime->log_tag());
          try {
            code = main_function(runtime);
          } catch (const std::exception& error) {
            ADD_FAILURE() << runtime->self().name() << ": " << error.what();
          }
          runtime.reset();
        });
  }
}

RankThreads::~RankThreads() {
  ranks_->coordinator.reset();
  ranks_->threads.clear();
  for (std::size_t rank = 0; rank < ranks_->codes.size(); ++rank)
    EXPECT_EQ(ranks_->codes[rank], 0) << "rank " << rank;
}

Cluster RankThreads::cluster() const { return Cluster(ranks_->coordinator); }
cluster::Runtime& RankThreads::runtime() const { return *ranks_->coordinator; }

}  // namespace capstan
