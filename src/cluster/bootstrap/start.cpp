// start.cpp -- chooses between MPI, TF_CONFIG and a job of one process.
#include "cluster/bootstrap/start.hpp"

#include <exception>
#include <map>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "cluster/bootstrap/tcp_bootstrap.hpp"

namespace capstan::cluster {
namespace {

Start start_by_mpi() {
  return {exchange_in_world, "rank " + std::to_string(launched_rank()), true, nullptr, finalize_world};
}

/// Returns a resolver with the current values of `resolver`, for the lifetime of the cluster.
std::shared_ptr<const ClusterResolver> copy_of(const ClusterResolver& resolver) {
  const ClusterSpec spec = resolver.cluster_spec();
  std::map<std::string, int> accelerators;
  try {
    accelerators = resolver.num_accelerators();
  } catch (const std::exception& error) {
    log::debug("the resolver cannot count this task's accelerators: {}", error.what());
  }
  return std::make_shared<SimpleClusterResolver>(
      spec, SimpleOptions{.master = spec.task_address(*resolver.task_type(), resolver.task_id().value_or(0)),
                          .task_type = resolver.task_type(),
                          .task_id = resolver.task_id(),
                          .environment = resolver.environment(),
                          .num_accelerators = std::move(accelerators),
                          .rpc_layer = resolver.rpc_layer()});
}

}  // namespace

Start start_at(const ClusterResolver& resolver, const Settings& settings) {
  Rendezvous rendezvous = rendezvous_of(resolver, settings);
  std::string name = rendezvous.self().name();
  return {[rendezvous = std::move(rendezvous)](const HelloSource& hello, std::chrono::milliseconds timeout) {
            return join_rendezvous(rendezvous, hello, timeout);
          },
          std::move(name), false, copy_of(resolver)};
}

std::optional<Start> choose_start(const Settings& settings) {
  const std::string& bootstrap = settings.text("bootstrap");
  if (bootstrap == "alone") return std::nullopt;
  const int ranks = launched_ranks().value_or(1);
  if (ranks > 1 && bootstrap != "tf-config") return start_by_mpi();
  if (bootstrap == "mpi") {
    require_mpi_in_slurm_step();
    return std::nullopt;
  }
  const auto resolver = default_cluster_resolver();
  if (bootstrap == "tf-config" && !resolver) {
    throw Error(Code::invalid_argument, "--bootstrap tf-config: the variable TF_CONFIG is not set");
  }
  if (resolver && !resolver->cluster_spec().empty()) return start_at(*resolver, settings);
  require_mpi_in_slurm_step();
  return std::nullopt;
}

AgentOptions agent_options(const Settings& settings, const Start& start) {
  const auto timeout = settings.duration("start-timeout");
  return {.exchange = [exchange = start.exchange,
                       timeout](const HelloSource& hello) { return exchange(hello, timeout); },
          .finalize = start.finalize,
          .run_dir = settings.text("run-dir"),
          .name = start.name,
          .has_launcher = start.has_launcher};
}

}  // namespace capstan::cluster
