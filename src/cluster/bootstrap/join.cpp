// join.cpp -- joins a cluster: over MPI, TCP or the program's own MPI, as a single process, or late.
#include "cluster/bootstrap/join.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/cluster_options.hpp"
#include "base/log.hpp"
#include "capstan/mpi.hpp"
#include "capstan/resolvers.hpp"
#include "capstan/serialize.hpp"
#include "cluster/bootstrap/connect_to_job.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "cluster/bootstrap/run_files.hpp"
#include "cluster/bootstrap/start.hpp"
#include "cluster/membership/persistent_record.hpp"
#include "cluster/roles/binding.hpp"
#include "cluster/roles/role_map.hpp"
#include "cluster/runtime.hpp"
#include "cluster/supervisor/agent.hpp"
#include "cluster/supervisor/agent_link.hpp"
#include "cluster/supervisor/file_limit.hpp"
#include "gpu/gpu.hpp"
#include "transport/ucx/fabric.hpp"
#include "transport/ucx/offer.hpp"

namespace capstan {
namespace {

using cluster::Runtime;

Role role_of(const cluster::Table& table) {
  const auto rank = static_cast<std::size_t>(table.rank);
  return rank < table.members.size() ? table.members[rank].role : Role::worker;
}

/// Launchers forward signals to every rank; SIGUSR1 and SIGUSR2 would end a process without a handler.
void leave_requests_to_the_coordinator() {
  for (const int number : {SIGUSR1, SIGUSR2}) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_DFL)
      std::signal(number, SIG_IGN);
  }
}

/// A worker connects to the coordinator and to every ps; the coordinator and a ps connect to all ranks.
std::size_t most_connections(const cluster::Table& table) {
  const auto ps = static_cast<std::size_t>(
      std::count_if(table.members.begin(), table.members.end(),
                    [](const cluster::Member& member) { return cluster::one_fabric(member.role); }));
  const bool worker = role_of(table) == Role::worker;
  return ps + (worker ? 1 : table.members.size());
}

/// Maximum number of printed lines of the binding table.
constexpr std::size_t kMaxBindingLines = 32;

/// A restarted worker gets the binding of its first process; a worker that joins late gets none.
void apply_binding(const Settings& settings, const cluster::Table& table) {
  const auto& members = table.members;
  auto self = static_cast<std::size_t>(table.rank);
  if (self >= members.size() && !table.is_late(table.rank)) {
    const int index = table.index_of(table.rank);
    self = static_cast<std::size_t>(std::find_if(members.begin(), members.end(),
                                                 [index](const cluster::Member& one) {
                                                   return one.role == Role::worker && one.index == index;
                                                 }) -
                                    members.begin());
  }
  if (self >= members.size() || settings.text("bind") == "off") return;
  const cluster::Binding binding = cluster::plan_binding(members)[self];
  if (binding.narrows) (void)topology::bind_this_process(binding.cpus);
}

/// Called by a coordinator that starts a job.
void log_placement(const Runtime& runtime) {
  log::set_rank_tag(runtime.log_tag());
  const auto bindings = cluster::plan_binding(runtime.members());
  log::info("{}", cluster::job_summary(runtime.members()));
  for (const auto& line : cluster::binding_table(runtime.members(), bindings, kMaxBindingLines)) {
    log::debug("{}", line);
  }
  for (const auto& line : cluster::binding_warnings(runtime.members(), bindings)) log::warn("{}", line);
}

/// Opens both fabrics, runs `exchange`, and keeps the fabrics that the role needs.
template <class Exchange>
Cluster join_with(const Settings& settings, int restarts, Exchange&& exchange) {
  auto control = std::make_unique<transport::UcxFabric>();
  auto data = std::make_unique<transport::UcxFabric>();
  cluster::Hello hello = cluster::make_hello();
  hello.roles = cluster::RoleRequest::from(settings);
  hello.own_role = settings.text("role");
  hello.replicas = settings.integer("replicas");
  hello.restarts = restarts;
  hello.late =
      settings.text("run-dir").empty() ? 0 : static_cast<std::int32_t>(settings.integer("late-workers"));
  hello.coordinator_wait = settings.duration("coordinator-wait").count();
  hello.resources = topology::available_resources();
  hello.resources.network = transport::network_kinds(data->transports());
  hello.control_address = control->address();
  hello.data_address = data->address();
  cluster::Table table = exchange(hello);
  for (cluster::Member& member : table.members) {
    if (cluster::one_fabric(member.role)) member.data_address = member.control_address;
  }
  if (static_cast<std::size_t>(table.rank) < table.members.size()) {
    // If this is a restarted ps, the table still has the pid and the addresses of its previous process.
    cluster::Member& self = table.members[static_cast<std::size_t>(table.rank)];
    self.pid = hello.pid;
    self.control_address = hello.control_address;
    self.data_address = cluster::one_fabric(self.role) ? hello.control_address : hello.data_address;
  }
  apply_binding(settings, table);
  if (cluster::one_fabric(role_of(table))) data.reset();
  cluster::raise_file_limit_for(most_connections(table));
  std::optional<cluster::Member> again;
  if (static_cast<std::size_t>(table.rank) >= table.members.size()) {
    again = cluster::Member{table.rank, Role::worker,          table.index_of(table.rank), hello.host,
                            hello.pid,  hello.control_address, hello.data_address};
  }
  return Cluster(cluster::with_run_files(std::make_shared<Runtime>(
      settings, std::move(table), std::move(control), std::move(data), std::move(again))));
}

/// Applies the last message of a restarted coordinator, which a restarted worker's table does not contain.
void find_coordinator(Runtime& runtime, const cluster::AgentLink::Memory& memory) {
  if (!memory) return;
  runtime.set_persistent_memory(memory);
  const auto last = cluster::PersistentRecord(memory).read();
  if (!last.empty()) runtime.coordinator_returned(from_bytes<cluster::CoordinatorReturned>(last).coordinator);
}

void apply_log_level(const Settings& settings, bool coordinator) {
  const std::string& level = settings.text("log-level");
  log::set_level(!level.empty() ? level : coordinator ? "info" : "warn");
}

/// Takes the link to the agent that executed this program, or splits the process.
cluster::AgentLink link_to_agent(const Settings& settings, const cluster::Start& start) {
  if (auto passed = cluster::AgentLink::adopt()) return std::move(*passed);
  if (gpu::was_used()) {
    throw Error(Code::failed_precondition,
                start.name +
                    ": GPUs were used before Cluster::join, which forks, and a forked process finds "
                    "none that works; call it first in main, or set --supervise off");
  }
  return cluster::split_into_agent_and_child(cluster::agent_options(settings, start));
}

Cluster join_with_agent(const Settings& settings, const cluster::Start& start) {
  cluster::AgentLink agent = link_to_agent(settings, start);
  Cluster cluster = join_with(
      settings, static_cast<int>(settings.integer("max-restarts")),
      [&](const cluster::Hello& hello) { return agent.exchange(hello, settings.duration("start-timeout")); });
  Runtime& runtime = *cluster.runtime();
  if (cluster::one_fabric(cluster.role()) && runtime.ps_may_return())
    runtime.set_persistent_memory(agent.persistent_memory());
  if (!runtime.coordinator_may_return()) return cluster;
  if (cluster.role() == Role::coordinator)
    runtime.load_record(agent.persistent_memory(), agent.restart_number());
  if (cluster.role() == Role::worker) find_coordinator(runtime, agent.persistent_memory());
  return cluster;
}

/// A process can be only one rank of one job, since the launcher, the agent and MPI support no second one.
std::atomic<bool> in_a_job{false};

Cluster join_job(const Settings& settings, const cluster::Start& start) {
  if (in_a_job) {
    throw Error(Code::failed_precondition,
                start.name +
                    " calls Cluster::join again, expected one call in a process that "
                    "is a rank of a job; keep the first Cluster");
  }
  Cluster joined = settings.text("supervise") == "on" || cluster::AgentLink::is_passed()
                       ? join_with_agent(settings, start)
                       : join_with(settings, 0, [&](const cluster::Hello& hello) {
                           cluster::Table table =
                               start.exchange([&] { return hello; }, settings.duration("start-timeout"));
                           if (start.finalize) start.finalize();
                           return table;
                         });
  in_a_job = true;
  joined.runtime()->set_resolver(start.resolver);
  apply_log_level(settings, joined.role() == Role::coordinator);
  if (joined.role() != Role::coordinator) {
    leave_requests_to_the_coordinator();
  } else if (!joined.recovered()) {
    log_placement(*joined.runtime());
  }
  return joined;
}

}  // namespace

std::string_view to_string(Role role) noexcept {
  switch (role) {
    case Role::coordinator:
      return "coordinator";
    case Role::ps:
      return "ps";
    case Role::worker:
      return "worker";
    case Role::evaluator:
      return "evaluator";
    case Role::spare:
      return "spare";
  }
  return "unknown role";
}

namespace {

/// Also collects settings from the arguments, and removes these arguments from `argv`.
Settings collected_settings(const ClusterOptions& options, int& argc, char** argv) {
  Settings settings = capstan::collected_settings(options);
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (!set_from_argument(settings, argv[i])) argv[kept++] = argv[i];
  }
  argc = kept;
  argv[argc] = nullptr;
  return settings;
}

Cluster join_at(const ClusterResolver& resolver, const Settings& settings) {
  if (!settings.text("join").empty()) return cluster::join(settings);  // started by `capstan join`
  return join_job(settings, cluster::start_at(resolver, settings));
}

}  // namespace

Cluster Cluster::join(int& argc, char** argv, const ClusterOptions& options) {
  return cluster::join(collected_settings(options, argc, argv));
}

Cluster Cluster::join(const ClusterOptions& options) { return cluster::join(collected_settings(options)); }

Cluster Cluster::join(int& argc, char** argv, const ClusterResolver& resolver,
                      const ClusterOptions& options) {
  return join_at(resolver, collected_settings(options, argc, argv));
}

Cluster Cluster::join(const ClusterResolver& resolver, const ClusterOptions& options) {
  return join_at(resolver, collected_settings(options));
}

Cluster cluster::join(const Settings& settings) {
  if (const std::string& run_dir = settings.text("join"); !run_dir.empty()) {
    apply_log_level(settings, false);
    return join_with(settings, 0, [&](const cluster::Hello& hello) {
      return cluster::join_late(run_dir, hello, settings.duration("start-timeout"));
    });
  }
  if (const auto start = cluster::choose_start(settings)) return join_job(settings, *start);
  apply_log_level(settings, true);
  return Cluster(Runtime::embedded_cluster(settings));
}

Cluster cluster_of_ranks(const std::shared_ptr<const mpi::Communicator>& ranks,
                         const ClusterOptions& options) {
  const Settings settings = collected_settings(options);
  Cluster cluster = cluster::join(ranks, settings);
  apply_log_level(settings, cluster.role() == Role::coordinator);
  return cluster;
}

Cluster cluster::join(const std::shared_ptr<const mpi::Communicator>& ranks, const Settings& settings) {
  if (ranks->size() == 1) return Cluster(Runtime::embedded_cluster(settings));
  Settings own_settings = settings;
  own_settings.set_from_flag("bind", "off");  // the program decides where its threads run
  return join_with(own_settings, 0, [&](const cluster::Hello& hello) {
    return cluster::exchange_within(
        *ranks, [&] { return hello; }, settings.duration("start-timeout"));
  });
}

Role Cluster::role() const noexcept { return runtime_->self().role; }
int Cluster::index() const noexcept { return runtime_->self().index; }
int Cluster::count(Role role) const noexcept { return runtime_->count(role); }
int Cluster::rank() const noexcept { return runtime_->self().rank; }
int Cluster::size() const noexcept { return static_cast<int>(runtime_->members().size()); }
bool Cluster::embedded() const noexcept { return !runtime_->embedded().empty(); }
bool Cluster::recovered() const noexcept { return runtime_->incarnation() > 0; }
std::optional<std::int64_t> Cluster::recorded_step() const {
  const cluster::CoordinatorRecord record = runtime_->coordinator_memory().read();
  if (recovered()) record.require_resumable();
  return record.step;
}
std::string Cluster::name() const { return runtime_->self().name(); }

}  // namespace capstan
