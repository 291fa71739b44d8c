// runtime.cpp -- connects a rank to other ranks, and to the processes that replace them.
#include "cluster/runtime.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "capstan/error.hpp"
#include "cluster/bootstrap/run_files.hpp"
#include "cluster/roles/gpu_assignment.hpp"
#include "cluster/roles/role_map.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "io/events/trace_file.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::cluster {
Runtime::Runtime(Settings settings, Table table, std::unique_ptr<transport::Fabric> control,
                 std::unique_ptr<transport::Fabric> data, std::optional<Member> own_member)
    : settings_(std::move(settings)),
      self_(own_member ? *own_member : table.members[static_cast<std::size_t>(table.rank)]),
      membership_(std::move(table), own_member),
      control_(std::move(control)),
      data_(std::move(data)) {
  control_peers_.resize(static_cast<std::size_t>(this->table().capacity()));
  data_peers_.resize(static_cast<std::size_t>(this->table().capacity()));
  for (transport::Fabric* fabric : {control_.get(), data_.get()}) {
    if (fabric == nullptr) continue;
    fabric->set_rank(this->table().rank);
    fabric->set_secret(this->table().secret);
  }
  log::set_rank_tag(log_tag());
  choose_gpus(settings_);
}

Runtime::~Runtime() {
  // A process with an agent exits when its job ends, so nothing needs to be torn down.
  if (in_process_ || !Heartbeat::watched()) return;
  control_->leave_teardown_to_exit();
  if (data_) data_->leave_teardown_to_exit();
}

std::string Runtime::log_tag() const {
  return std::string(to_string(self().role)) + " " + std::to_string(self().index) + "@" + self().host;
}

void Runtime::trace_to(const std::filesystem::path& directory) {
  trace_ = std::make_unique<io::TraceFile>(directory / fmt::format("rank-{:05}.json", self().rank),
                                           self().rank, self().name());
}

void Runtime::become(const Member& ps) {
  self_ = ps;
  membership_.become(ps);
  control_->set_rank(ps.rank);
  log::set_rank_tag(log_tag());
}

void Runtime::reconnect_ps_on_control(const Member& ps) {
  membership_.move(ps, Membership::Address::control);
  transport::Peer* peer = control_peers_.at(static_cast<std::size_t>(ps.rank));
  if (peer != nullptr) peer->revive(ps.control_address, ps.name());
}

void Runtime::reconnect_ps_on_data(const Member& ps) {
  membership_.move(ps, Membership::Address::data);
  transport::Peer* peer = data_peers_.at(static_cast<std::size_t>(ps.rank));
  if (peer != nullptr) peer->revive(ps.data_address, ps.name());
}

void Runtime::drop_data_peer(int rank) noexcept {
  transport::Peer* peer = data_peers_.at(static_cast<std::size_t>(rank));
  if (peer != nullptr) peer->mark_failed();
}

void Runtime::coordinator_returned(const Member& coordinator) {
  const auto at = static_cast<std::size_t>(coordinator.rank);
  membership_.move(coordinator, Membership::Address::control);
  membership_.move(coordinator, Membership::Address::data);
  if (control_peers_.at(at) != nullptr)
    control_peers_[at]->revive(coordinator.control_address, coordinator.name());
  if (self_.role == Role::ps && data_peers_.at(at) != nullptr) {
    data_peers_[at]->revive(coordinator.data_address, coordinator.name());
  }
}

void Runtime::load_record(std::shared_ptr<transport::PersistentMemory> memory, int incarnation) {
  incarnation_ = incarnation;
  coordinator_memory_.set_persistent_memory(std::move(memory));
  const CoordinatorRecord found = coordinator_memory_.read();
  for (const Member& ps : found.ps) {
    reconnect_ps_on_control(ps);
    reconnect_ps_on_data(ps);
  }
  for (const SpareRecord& spare : found.spares) {
    // The previous process of the ps is fenced, and this spare is about to replace it.
    if (spare.state != SpareRecord::State::failing_over) continue;
    Member ps = member(spare.rank);
    ps.role = Role::ps;
    ps.rank = spare.ps;
    ps.index = spare.ps_index;
    reconnect_ps_on_control(ps);
    reconnect_ps_on_data(ps);
  }
  for (const Member& worker : found.workers) {
    if (worker.index < count(Role::worker))
      membership_.set(member(Role::worker, worker.index).rank, MemberState::dead, "it was restarted");
    membership_.add(worker, MemberState::alive);
  }
  for (const std::int32_t rank : found.lost)
    membership_.set(rank, MemberState::dead, "the previous coordinator lost it");
}

transport::Peer& Runtime::control_peer(const Member& to) {
  transport::Peer*& peer = control_peers_[static_cast<std::size_t>(to.rank)];
  if (peer == nullptr) peer = &control_->connect(to.rank, to.name(), to.control_address);
  return *peer;
}

transport::Peer& Runtime::data_peer(const Member& to) {
  transport::Peer*& peer = data_peers_[static_cast<std::size_t>(to.rank)];
  if (peer == nullptr) peer = &data().connect(to.rank, to.name(), to.data_address);
  return *peer;
}

std::vector<std::shared_ptr<Runtime>> Runtime::as_threads(const Settings& settings, int ranks,
                                                          transport::LoopHub& hub) {
  const std::vector<std::string> hosts(static_cast<std::size_t>(ranks), host_name());
  const std::vector<RoleAssignment> assignments = map_roles(hosts, RoleRequest::from(settings));
  Table table;
  std::vector<std::pair<std::unique_ptr<transport::Fabric>, std::unique_ptr<transport::Fabric>>> fabrics;
  for (int rank = 0; rank < ranks; ++rank) {
    const RoleAssignment assigned = assignments[static_cast<std::size_t>(rank)];
    auto control = hub.open();
    auto data = one_fabric(assigned.role) ? nullptr : hub.open();
    table.members.push_back({rank, assigned.role, assigned.index, hosts[0], getpid(), control->address(),
                             data ? data->address() : control->address()});
    fabrics.emplace_back(std::move(control), std::move(data));
  }
  std::vector<std::shared_ptr<Runtime>> runtimes;
  for (int rank = 0; rank < ranks; ++rank) {
    table.rank = rank;
    auto& [control, data] = fabrics[static_cast<std::size_t>(rank)];
    runtimes.push_back(std::make_shared<Runtime>(settings, table, std::move(control), std::move(data)));
  }
  log::set_rank_tag(runtimes[0]->log_tag());
  return runtimes;
}

std::shared_ptr<Runtime> Runtime::embedded_cluster(const Settings& settings) {
  Settings complete = settings;
  // Ignores spares and replicas that the program asks for: in one process, a ps cannot fail alone. Those that
  // the user asks for are an error.
  for (const char* name : {"spares", "replicas-of-ps"}) complete.drop_from_program(name);
  const RoleRequest request = RoleRequest::from(complete);
  if (request.spares > 0 || request.replicas) {
    const std::string asked =
        request.replicas ? "--replicas-of-ps 2" : "--spares " + std::to_string(request.spares);
    throw Error(
        Code::invalid_argument,
        asked +
            " has no use in a job of one process, whose ranks cannot fail separately: omit it, or start "
            "ranks with mpirun");
  }
  const int ranks = 1 + std::max(1, request.ps) + std::max(1, request.workers);
  complete.set_from_flag("roles",
                         "coordinator:1,ps:" + std::to_string(std::max(1, request.ps)) + ",worker:*");
  complete.set_from_flag("role-map", "spread");
  transport::LoopHub hub;
  auto runtimes = as_threads(complete, ranks, hub);
  for (const auto& runtime : runtimes) runtime->in_process_ = true;
  auto coordinator = runtimes[0];
  coordinator->embedded_.assign(runtimes.begin() + 1, runtimes.end());
  return with_run_files(coordinator);
}

void Runtime::begin_job() {
  Job found = Job::none;
  if (job_.compare_exchange_strong(found, Job::runs)) return;
  if (found == Job::runs) {
    throw Error(
        Code::failed_precondition,
        "cannot create a strategy: this cluster has one already, expected one at a time; use that one, or "
        "destroy it first");
  }
  if (embedded_.empty()) {
    throw Error(
        Code::failed_precondition,
        "cannot create a strategy: the first one of this job has ended, which told every ps and worker to "
        "end; keep one strategy until the program ends (only an embedded cluster, of one process, can have "
        "one after the other)");
  }
  if (!job_.compare_exchange_strong(found, Job::runs)) return begin_job();
  try {
    make_ranks_again();
  } catch (...) {
    job_ = Job::over;
    throw;
  }
}

void Runtime::end_job(bool over) noexcept { job_ = over ? Job::over : Job::none; }

/// REQUIRES: threads of the previous job have ended, and nothing uses their fabrics.
void Runtime::make_ranks_again() {
  transport::LoopHub hub;
  auto ranks = as_threads(settings_, static_cast<int>(members().size()), hub);
  for (const auto& rank : ranks) rank->in_process_ = true;
  for (std::size_t i = 0; i < embedded_.size(); ++i) ranks[i + 1]->trace_ = std::move(embedded_[i]->trace_);
  embedded_.assign(ranks.begin() + 1, ranks.end());
  membership_.begin_again(ranks[0]->table());
  control_ = std::move(ranks[0]->control_);
  data_ = std::move(ranks[0]->data_);
  control_peers_.assign(control_peers_.size(), nullptr);
  data_peers_.assign(data_peers_.size(), nullptr);
  coordinator_memory_.change([](CoordinatorRecord& record) { record = {}; });
  ps_given_up_ = false;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  const std::string text(name.data());
  return text.substr(0, text.find('.'));
}

}  // namespace capstan::cluster
