// strategy.cpp -- constructs the parts of a strategy, and ends the job.
#include "strategy/strategy.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "strategy/replica_group.hpp"

namespace capstan::strategy {
namespace {

thread_local Strategy* current_strategy = nullptr;

/// Throws unless `given` matches the settings with which the ranks have already set up their replicas.
void check_gpus(const Settings& settings, std::optional<int> given) {
  if (!given) return;
  const bool on_gpus = settings.text("replica-device") == "gpu";
  const std::int64_t started = on_gpus ? settings.integer("replicas") : 0;
  if (started == *given) return;
  throw Error(
      Code::invalid_argument,
      fmt::format(
          "StrategyOptions::num_gpus_per_worker is {}, expected {}, which the job was started "
          "with; start every rank with {}",
          *given, started,
          *given > 0 ? fmt::format("--replicas={} --replica-device=gpu", *given) : "--replica-device=host"));
}

std::shared_ptr<cluster::Runtime> as_coordinator(std::shared_ptr<cluster::Runtime> runtime,
                                                 const StrategyOptions& options) {
  if (runtime->self().role != Role::coordinator) {
    throw Error(Code::failed_precondition, "a strategy is made on the coordinator; this is " +
                                               runtime->self().name() +
                                               ", which runs Server(cluster).join()");
  }
  check_gpus(runtime->settings(), options.num_gpus_per_worker);
  return runtime;
}

}  // namespace

Strategy* Strategy::current() noexcept { return current_strategy; }
void Strategy::set_current(Strategy* strategy) noexcept { current_strategy = strategy; }

Strategy::Strategy(std::shared_ptr<cluster::Runtime> runtime, StrategyOptions options)
    : Strategy(std::move(runtime), options, /*of_this_process=*/false) {}

Strategy::Strategy(std::shared_ptr<cluster::Runtime> joined, const StrategyOptions& options,
                   bool of_this_process)
    : job_(as_coordinator(std::move(joined), options)),
      of_this_process_(of_this_process),
      context_(runtime()),
      save_progress_(runtime()->control(), static_cast<std::uint64_t>(runtime()->incarnation()) << 40),
      control_(*runtime(), save_progress_),
      recovery_(*runtime(), context_.client()),
      contents_(runtime()->coordinator_memory(), runtime()->count(Role::spare) > 0),
      restore_point_(contents_),
      variables_(of_this_process ? VariableRegistry::Names::reusable : VariableRegistry::Names::unique),
      variable_creator_({*runtime(), context_, recovery_, contents_, restore_point_, variables_}, options,
                        of_this_process),
      worker_resources_(runtime()->control()),
      counters_(*runtime(), context_, restore_point_),
      update_groups_(*runtime(), context_, recovery_, contents_),
      states_(restore_point_) {
  // Includes variables that the program has not created again yet: a ps that dies loses them, too.
  for (protocol::ListedShard& shard : recovery_.shards())
    contents_.add(shard.location.ps, std::move(shard.description));
  for (const std::string& group : recovery_.groups()) contents_.add_group(group);
  job_.start_embedded_ps();
  if (of_this_process_) return;
  context_.replicas().run_in_scope_of(*this);
  control_.start_interim();
  Context::add_to_thread(context_);
}

Strategy& Strategy::of_this_process() {
  static Strategy strategy = [] {
    log::debug("a variable is created outside of a strategy's scope: it stays in this process");
    Settings settings;
    settings.set_from_flag("heap-slab-bytes", "1MiB");
    return Strategy(cluster::Runtime::embedded_cluster(settings), {}, /*of_this_process=*/true);
  }();
  strategy.context_.share(true);  // the replicas of any strategy may use its variables
  return strategy;
}

Strategy::~Strategy() {
  // The coordinator's dispatcher has ended, so this thread drives the control fabric.
  control_.stop_interim();
  job_.end();
  if (!of_this_process_) Context::remove_from_thread(context_);
}

}  // namespace capstan::strategy
