// strategy.cpp -- placing shards, and the public face of it.
#include "strategy/strategy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/name.hpp"
#include "capstan/resolvers.hpp"
#include "capstan/serialize.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "io/hdf5/layout.hpp"
#include "protocol/partition.hpp"
#include "ps/server/ps_server.hpp"
#include "strategy/replica_group.hpp"
#include "transport/bytes.hpp"

namespace capstan {
namespace strategy {
namespace {

thread_local Strategy* current_strategy = nullptr;

transport::Bytes view(const std::vector<std::byte>& bytes) { return bytes; }

/// Rejects integers that were cast to an enumerator.
void check_options(const std::string& name, const VariableOptions& options) {
  const auto check = [&](const char* what, auto given, auto last, const char* allowed) {
    if (given <= last) return;
    throw Error(Code::invalid_argument, fmt::format("variable \"{}\" has {} {}; expected {}", name, what,
                                                    static_cast<int>(given), allowed));
  };
  check("aggregation", options.aggregation, VariableAggregation::only_first_replica,
        "none, sum, mean or only_first_replica");
  check("synchronization", options.synchronization, VariableSynchronization::on_read,
        "automatic, none, on_write or on_read");
  check("memory", options.memory.value_or(ShardMemory::host), ShardMemory::device, "host or device");
}

void check_rounding(const protocol::VariableDescriptor& variable) {
  const bool is_half = variable.dtype == DType::float16 || variable.dtype == DType::bfloat16;
  if (!variable.stochastic_rounding || (is_half && variable.memory == ShardMemory::device)) return;
  throw Error(Code::invalid_argument,
              fmt::format("variable \"{}\" is {} in the memory of a {} and asks for stochastic rounding; "
                          "expected float16 or bfloat16 in the memory of GPUs (ShardMemory::device)",
                          variable.name, to_string(variable.dtype), to_string(variable.memory)));
}

/// Replicas are the ranks' own, by settings that are the same on every rank.
void check_gpus(const Settings& settings, std::optional<int> expected) {
  if (!expected) return;
  const bool on_gpus = settings.text("replica-device") == "gpu";
  const std::int64_t there = on_gpus ? settings.integer("replicas") : 0;
  if (there == *expected) return;
  throw Error(
      Code::invalid_argument,
      fmt::format("StrategyOptions::num_gpus_per_worker is {}, expected {}, which the job was started "
                  "with; start every rank with {}",
                  *expected, there,
                  *expected > 0 ? fmt::format("--replicas={} --replica-device=gpu", *expected)
                                : "--replica-device=host"));
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

Strategy::Job::Job(cluster::Runtime& runtime) : runtime_(runtime) {
  runtime_.begin_job();
  // Ranks send messages as soon as they run, and may die; the Coordinator has the handlers.
  runtime_.control().keep_unhandled(true);
}

Strategy::Job::~Job() {
  // Closing its peers still delivers what has arrived, and handlers refer to the strategy.
  runtime_.control().remove_handlers();
  runtime_.end_job(over_);
}

Strategy* Strategy::current() noexcept { return current_strategy; }
void Strategy::set_current(Strategy* strategy) noexcept { current_strategy = strategy; }

Strategy::Strategy(std::shared_ptr<cluster::Runtime> runtime, StrategyOptions options, bool of_this_process)
    : runtime_(as_coordinator(std::move(runtime), options)),
      job_(*runtime_),
      options_(std::move(options)),
      of_this_process_(of_this_process),
      context_(runtime_),
      interim_control_(*runtime_),
      recovery_(*runtime_, context_.client()),
      worker_resources_(runtime_->control()),
      next_variable_(recovery_.last_variable() + 1),
      placed_bytes_(static_cast<std::size_t>(runtime_->count(Role::ps))),
      placed_shards_(placed_bytes_.size()),
      counters_(runtime_->coordinator_memory().read().counters),
      contents_(runtime_->coordinator_memory()),
      save_(static_cast<std::uint64_t>(runtime_->incarnation()) << 40),
      subscriptions_(runtime_->control()) {
  // Those that the program has not created again are lost with a ps as well.
  for (protocol::ListedShard& there : recovery_.shards())
    contents_.add(there.location.ps, std::move(there.description));
  for (const std::string& group : recovery_.groups()) contents_.add_group(group);
  subscriptions_.on_message(transport::kShardsSaved,
                            [this](const transport::Message& message) { save_.take(message); });
  start_embedded_ps();
  if (of_this_process_) return;
  context_.replicas().run_in_scope_of(*this);
  interim_control_.start();
  Context::add_of_this_thread(context_);
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

void Strategy::start_embedded_ps() {
  for (const auto& rank : runtime_->embedded()) {
    if (rank->self().role != Role::ps) continue;
    embedded_ps_.emplace_back([rank] {
      try {
        ps::PsServer(rank).run();
      } catch (const std::exception& error) {
        log::error("the ps of this process ended: {}", error.what());
      }
    });
  }
}

Strategy::~Strategy() {
  // By now the coordinator's dispatcher has ended, so this thread drives the control fabric.
  interim_control_.stop();
  if (!runtime_->in_process()) cluster::Heartbeat::be_the_last();  // a restarted rank would find no job
  const std::vector<int> workers = runtime_->membership().worker_ranks();
  const cluster::CoordinatorRecord record = runtime_->coordinator_memory().read();
  const auto& lost = record.lost;
  for (const cluster::Member& member : runtime_->members()) {
    if (member.role == Role::coordinator) continue;
    // One that has died or was followed by another: a coordinator that came back has not connected to it.
    const auto is_it = [&](int rank) { return rank == member.rank; };
    if (member.role == Role::worker && (std::none_of(workers.begin(), workers.end(), is_it) ||
                                        std::any_of(lost.begin(), lost.end(), is_it))) {
      continue;
    }
    // One that is a ps is told as that, and one that counts as dead may live.
    if (member.role == Role::spare && runtime_->incarnation() > 0 && !record.waits(member.rank)) continue;
    try {
      runtime_->control_peer(member).send(transport::kShutdown, {});
    } catch (const Error& error) {
      log::debug("cannot tell {} that the job is over: {}", member.name(), error.what());
    }
  }
  runtime_->control().progress();
  embedded_ps_.clear();
  if (!of_this_process_) Context::remove_of_this_thread(context_);
  job_.is_over();
}

std::uint64_t Strategy::shards_of(const std::string& name, DType dtype, const Shape& shape) const {
  if (!options_.variable_partitioner || shape.empty() || colocated_ >= 0) return 1;
  const std::vector<std::int64_t> parts = options_.variable_partitioner(shape, dtype).axes;
  const bool others_whole = std::all_of(parts.begin() + (parts.empty() ? 0 : 1), parts.end(),
                                        [](std::int64_t n) { return n == 1; });
  if (parts.empty() || parts[0] < 1 || !others_whole) {
    throw Error(
        Code::invalid_argument,
        fmt::format("variable_partitioner returned [{}] for variable \"{}\" of shape {}; expected a number "
                    "of shards for each axis, 1 or more for the first and 1 for the others",
                    fmt::join(parts, ", "), name, to_string(shape)));
  }
  if (parts[0] == 1) return 1;
  if (shape[0] == 0) {
    throw Error(Code::invalid_argument,
                fmt::format("variable_partitioner returned {} shards for variable \"{}\" of shape {}, which "
                            "has no rows to put into them; expected 1",
                            parts[0], name, to_string(shape)));
  }
  return static_cast<std::uint64_t>(std::min(parts[0], shape[0]));
}

int Strategy::next_place(std::uint64_t bytes) {
  int ps = colocated_;
  if (ps < 0 && options_.placement == Placement::by_bytes) {
    ps = static_cast<int>(std::min_element(placed_bytes_.begin(), placed_bytes_.end()) -
                          placed_bytes_.begin());
  } else if (ps < 0) {
    ps = next_ps_++ % runtime_->count(Role::ps);
  }
  placed_bytes_[static_cast<std::size_t>(ps)] += bytes;
  ++placed_shards_[static_cast<std::size_t>(ps)];
  return ps;
}

void Strategy::check_new(const std::string& name, const Shape& shape) const {
  if (!std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size >= 0; })) {
    throw Error(
        Code::invalid_argument,
        fmt::format("variable \"{}\" has shape {}; expected sizes of 0 or more", name, to_string(shape)));
  }
  (void)elements_of(shape);
  if (of_this_process_) return;  // a later one of the same name hides the earlier one
  if (variable_names_.contains(name)) {
    throw Error(Code::already_exists, "there is a variable \"" + name + "\" already");
  }
  io::check_name_apart(variable_names_, name);
}

Strategy::Created Strategy::create_shards(protocol::VariableDescriptor& descriptor,
                                          const detail::AnyInitialValue& initial) {
  Created created;
  const std::uint64_t moves = context_.client().connections().relocations();
  const Shape shape(descriptor.shape.begin(), descriptor.shape.end());
  const std::uint64_t shards = shards_of(descriptor.name, descriptor.dtype, shape);
  const protocol::DivPartition partition(descriptor.rows(), shards);
  protocol::check_shard_rows(descriptor.name, 0, partition.rows_of(0), descriptor.rows());
  const std::uint64_t slots_width = protocol::slots_of(descriptor.optimizer.kind).size() *
                                    descriptor.width() * size_of(protocol::slot_dtype(descriptor.dtype));
  auto& rpc = context_.client().connections().rpc();
  struct Call {
    std::optional<transport::RpcClient::Id> id;  // none once it was waited for
    std::uint32_t revivals;                      // of the ps's peer, when the call was sent
    std::uint32_t shard;
    int ps;
    std::vector<std::byte> request;
  };
  Recovery::Locations there;
  created.was_there = recovery_.find(descriptor, shards, there);
  if (!created.was_there) descriptor.id = next_variable_++;
  std::vector<Call> calls;
  bool any_made = false;
  const auto placed = std::tuple(next_ps_, placed_bytes_, placed_shards_);
  for (std::uint64_t s = 0; s < shards; ++s) {
    const auto location = there.find(static_cast<std::uint32_t>(s));
    const int ps = next_place(partition.rows_of(s) * (descriptor.row_bytes() + slots_width));
    const protocol::CreateShard request{descriptor.id,
                                        static_cast<std::uint32_t>(s),
                                        descriptor.name,
                                        descriptor.dtype,
                                        descriptor.shape,
                                        partition.first_row_of(s),
                                        partition.rows_of(s),
                                        descriptor.optimizer,
                                        initial.initializer,
                                        descriptor.group,
                                        initial.fill,
                                        descriptor.memory,
                                        descriptor.stochastic_rounding};
    if (location != there.end()) continue;
    created.requests.emplace_back(ps, request);
    log::debug("variable \"{}\": shard {} of {}, {} rows on ps {}", shard_name(descriptor.name, s, shards), s,
               shards, partition.rows_of(s), ps);
    client::PsConnection& connection = context_.client().connections().at(ps);
    connection.require_alive();
    auto bytes = to_bytes(request);
    const auto id = rpc.start(connection.peer(), transport::kCreateVariable, bytes);
    calls.push_back({id, connection.peer().revivals(), static_cast<std::uint32_t>(s), ps, std::move(bytes)});
  }
  std::optional<Error> failed;
  for (Call& call : calls) {
    // A large table takes its time to fill, so the wait grows with it: a tenth of a GB/s is slower than any
    // ps.
    const auto filling = std::chrono::milliseconds(descriptor.rows() * descriptor.row_bytes() / 100'000);
    std::vector<std::byte> location;
    const auto create = [&] {
      // A ps that was restarted is called again: it has the shard once, whether or not it had created it.
      transport::Peer& peer = context_.client().connections().at(call.ps).peer();
      if (call.id && call.revivals != peer.revivals()) rpc.cancel(*std::exchange(call.id, std::nullopt));
      if (!call.id) call.id = rpc.start(peer, transport::kCreateVariable, call.request);
      location = rpc.wait(*std::exchange(call.id, std::nullopt), runtime_->wait_timeout() + filling,
                          "create variable \"" + descriptor.name + "\"");
    };
    try {
      context_.client().connections().retry(create);
      there[call.shard] = from_bytes<protocol::ShardLocation>(location);
      any_made = true;
    } catch (const Error& error) {
      // One that does not answer is lost, and its shards with it.
      if (error.code() == Code::unavailable || error.code() == Code::deadline_exceeded) throw;
      if (!failed) failed = error;
    }
  }
  if (failed) {
    std::tie(next_ps_, placed_bytes_, placed_shards_) = placed;
    if (any_made && !created.was_there) {
      drop_variable(descriptor);
    }
    throw *failed;
  }
  if (context_.client().connections().relocations() != moves) {
    throw Error(Code::unavailable, "a spare took the place of a ps while variable \"" + descriptor.name +
                                       "\" was made; make it again");
  }
  for (const auto& [number, location] : there) descriptor.shards.push_back(location);
  return created;
}

std::shared_ptr<const BoundVariable> Strategy::create_variable(const std::string& name, DType dtype,
                                                               const Shape* shape,
                                                               const detail::AnyInitialValue& initial,
                                                               const VariableOptions& options) {
  check_name("variable", name);
  detail::WholeValue whole;
  if (shape != nullptr) check_new(name, *shape);
  if (initial.whole) whole = initial.whole();
  if (shape == nullptr && !initial.whole) {
    throw Error(Code::invalid_argument, "variable \"" + name + "\" needs a shape: its initializer has none");
  }
  if (shape != nullptr && initial.whole && !whole.fits(*shape)) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\" has shape {} and an initial value of shape {}", name,
                            to_string(*shape), to_string(whole.shape)));
  }
  const Shape& sizes = shape != nullptr ? *shape : whole.shape;
  if (shape == nullptr) check_new(name, sizes);
  protocol::check_initializer(name, dtype, sizes, initial.initializer);
  check_options(name, options);

  protocol::VariableDescriptor descriptor;
  descriptor.name = name;
  descriptor.dtype = dtype;
  descriptor.shape.assign(sizes.begin(), sizes.end());
  descriptor.optimizer = options.optimizer.value_or(is_floating(dtype) || dtype == DType::boolean
                                                        ? Optimizer(optimizers::SGD{})
                                                        : Optimizer(optimizers::SGD{.learning_rate = 1}));
  descriptor.trainable = options.trainable;
  descriptor.aggregation = options.aggregation;
  descriptor.synchronization = options.synchronization;
  descriptor.group = options.group ? options.group->id() : 0;
  descriptor.memory = options.memory.value_or(options_.memory);
  descriptor.stochastic_rounding = options.stochastic_rounding;
  protocol::check_optimizer(name, dtype, descriptor.optimizer);
  check_rounding(descriptor);
  protocol::check_bytes(name, dtype, descriptor.shape, descriptor.optimizer.kind);
  if (restore_point_ && restore_point_->has_variable(name)) restore_point_->require_fit(descriptor);
  Created created = create_shards(descriptor, initial);
  fill_new(descriptor, created, initial, whole);
  for (auto& [ps, request] : created.requests) contents_.add(ps, std::move(request));
  if (restore_point_ && restore_point_->complete()) contents_.extend_checkpoint(descriptor.id);
  auto bound = context_.add(std::move(descriptor), of_this_process_);
  variable_names_.insert(name);
  const std::lock_guard lock(variables_mutex_);
  variables_.push_back(bound);
  return bound;
}

void Strategy::fill_new(const protocol::VariableDescriptor& descriptor, const Created& created,
                        const detail::AnyInitialValue& initial, const detail::WholeValue& whole) {
  const bool has_values = created.was_there && recovery_.complete(descriptor.name);
  if (restore_point_ && restore_point_->has_variable(descriptor.name)) {
    try {
      restore_point_->fill(descriptor);
    } catch (...) {
      if (!created.was_there) drop_variable(descriptor);
      throw;
    }
  } else {
    if (restore_point_) restore_point_->lacks_variable(descriptor.name);
    if (initial.whole && !has_values)
      context_.client().update(descriptor, protocol::RowOp::set, 0, descriptor.rows(), whole.bytes.data());
  }
  if (initial.whole && !has_values && runtime_->coordinator_may_return()) {
    runtime_->coordinator_memory().change([&](auto& record) { record.variables.push_back(descriptor.name); });
  }
}

void Strategy::drop_variable(const protocol::VariableDescriptor& descriptor) {
  ask_every_ps(transport::kDropVariable, transport::as_bytes(descriptor.id), runtime_->wait_timeout(),
               "forget variable \"" + descriptor.name + "\"");
}

std::vector<PsLoad> Strategy::loads() {
  const auto answers =
      ask_every_ps(transport::kPsStatistics, {}, runtime_->wait_timeout(), "say what it has done");
  std::vector<PsLoad> loads;
  for (std::size_t ps = 0; ps < answers.size(); ++ps) {
    const auto statistics = from_bytes<protocol::PsStatistics>(answers[ps]);
    loads.push_back({static_cast<int>(ps), runtime_->member(Role::ps, static_cast<int>(ps)).host,
                     placed_shards_[ps], placed_bytes_[ps], statistics.pushes, statistics.rows_pushed,
                     statistics.bytes_pushed, statistics.rows_sent});
  }
  for (const auto& variable : variables()) {
    const auto& shards = variable->descriptor.shards;
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      loads[static_cast<std::size_t>(shards[shard].ps)].shard_names.push_back(
          shard_name(variable->descriptor.name, shard, shards.size()));
    }
  }
  return loads;
}

std::uint32_t Strategy::create_group(const std::string& name, const Synchronization& synchronization) {
  check_name("update group", name);
  if (std::find(groups_.begin(), groups_.end(), name) != groups_.end()) {
    throw Error(Code::already_exists, "there is an update group \"" + name + "\" already");
  }
  if (!recovery_.groups().empty()) {
    throw Error(
        Code::unavailable,
        fmt::format("update groups ({}) do not outlive the coordinator, which was killed; start again "
                    "with --resume to go on from the last checkpoint",
                    fmt::join(recovery_.groups(), ", ")));
  }
  if (groups_.size() == protocol::BoardLayout::kGroups) {
    throw Error(Code::resource_exhausted,
                fmt::format("{} update groups are all that a ps has room for", groups_.size()));
  }
  protocol::CreateGroup request;
  request.id = static_cast<std::uint32_t>(groups_.size() + 1);
  for (const int rank : runtime_->membership().worker_ranks()) request.workers.push_back(rank);
  if (const auto* stale = std::get_if<StaleSynchronous>(&synchronization)) {
    request.mode = protocol::GroupMode::stale_synchronous;
    request.bound = stale->bound;
    if (stale->bound < 0) {
      throw Error(Code::invalid_argument,
                  fmt::format("update group \"{}\" has a staleness bound of {}; expected 0 or more", name,
                              stale->bound));
    }
  } else if (const auto* synchronous = std::get_if<Synchronous>(&synchronization)) {
    request.mode = protocol::GroupMode::synchronous;
    request.average = synchronous->average;
    request.backup_workers = synchronous->backup_workers;
    const int workers = runtime_->count(Role::worker);
    if (synchronous->backup_workers < 0 || synchronous->backup_workers >= workers) {
      throw Error(
          Code::invalid_argument,
          fmt::format(
              "update group \"{}\" has {} backup workers; expected 0 to {}, fewer than the {} workers", name,
              synchronous->backup_workers, workers - 1, workers));
    }
  }
  ask_every_ps(transport::kCreateGroup, view(to_bytes(request)), runtime_->wait_timeout(),
               "create update group \"" + name + "\"");
  {
    const std::lock_guard lock(variables_mutex_);
    groups_.push_back(name);
  }
  contents_.add_group(name);
  runtime_->coordinator_memory().change([&](auto& record) { record.groups = groups_; });
  return request.id;
}

void Strategy::restart_group(std::uint32_t group, const std::string& name) {
  ask_every_ps(transport::kRestartGroup, transport::as_bytes(group), runtime_->wait_timeout(),
               "restart update group \"" + name + "\"");
}

std::vector<std::string> Strategy::group_names() const {
  const std::lock_guard lock(variables_mutex_);
  return groups_;
}

std::vector<std::shared_ptr<const BoundVariable>> Strategy::variables(std::size_t known) const {
  const std::lock_guard lock(variables_mutex_);
  return {variables_.begin() + static_cast<std::ptrdiff_t>(known), variables_.end()};
}

std::shared_ptr<const BoundVariable> Strategy::find_variable(const std::string& name) const {
  const std::lock_guard lock(variables_mutex_);
  const auto found = std::find_if(variables_.rbegin(), variables_.rend(),
                                  [&](const auto& variable) { return variable->descriptor.name == name; });
  return found == variables_.rend() ? nullptr : *found;
}

std::vector<std::vector<std::byte>> Strategy::ask_every_ps(std::uint16_t type, transport::Bytes request,
                                                           std::chrono::milliseconds timeout,
                                                           const std::string& what) {
  client::PsConnections& connections = context_.client().connections();
  std::vector<transport::RpcClient::Id> calls;
  for (int ps = 0; ps < runtime_->count(Role::ps); ++ps) {
    calls.push_back(connections.rpc().start(connections.live(ps).peer(), type, request));
  }
  std::vector<std::vector<std::byte>> answers;
  for (const auto call : calls) answers.push_back(connections.rpc().wait(call, timeout, what));
  return answers;
}

void Strategy::ask_each_ps(std::uint16_t type, const std::vector<std::vector<std::byte>>& requests,
                           std::chrono::milliseconds timeout, const std::string& what) {
  client::PsConnections& connections = context_.client().connections();
  std::vector<transport::RpcClient::Id> calls;
  for (std::size_t ps = 0; ps < requests.size(); ++ps) {
    calls.push_back(
        connections.rpc().start(connections.live(static_cast<int>(ps)).peer(), type, requests[ps]));
  }
  std::optional<Error> refused;
  for (const auto call : calls) {
    const transport::RpcOutcome outcome = connections.rpc().outcome(call, timeout, what);
    if (outcome.unanswered()) throw *outcome.error;
    if (!refused) refused = outcome.error;
  }
  if (refused) throw *refused;
}

}  // namespace strategy

ParameterServerStrategy::ParameterServerStrategy(const Cluster& cluster, StrategyOptions options)
    : implementation_(std::make_unique<strategy::Strategy>(cluster.runtime(), std::move(options))) {
  set_group(implementation_->context().replicas());
}
ParameterServerStrategy::~ParameterServerStrategy() = default;
ParameterServerStrategy::ParameterServerStrategy(ParameterServerStrategy&&) noexcept = default;

ParameterServerStrategy::Scope::Scope(strategy::Strategy* strategy)
    : outer_(strategy::Strategy::current()), strategy_(strategy) {
  if (outer_ != nullptr && outer_ != strategy) {
    throw Error(Code::failed_precondition,
                "mixing strategies: the scope of one cannot be opened inside the scope of another");
  }
  strategy::Strategy::set_current(strategy);
}

ParameterServerStrategy::Scope::~Scope() {
  CAPSTAN_ASSERT(strategy::Strategy::current() == strategy_);  // scopes end in the reverse order
  strategy::Strategy::set_current(outer_);
}

ParameterServerStrategy::Colocation::Colocation(strategy::Strategy* strategy, int ps)
    : strategy_(strategy), outer_(strategy->colocate(ps)) {}
ParameterServerStrategy::Colocation::~Colocation() { strategy_->colocate(outer_); }

ParameterServerStrategy::Colocation ParameterServerStrategy::colocate_vars_with(const AnyVariable& variable,
                                                                                std::size_t shard) {
  if (!variable_created_in_scope(variable)) {
    throw Error(Code::invalid_argument, "colocate_vars_with: variable \"" + variable.name() +
                                            "\" was not created in this strategy's scope");
  }
  const auto& shards = variable.bound()->descriptor.shards;
  if (shard >= shards.size()) {
    throw Error(Code::out_of_range,
                fmt::format("colocate_vars_with: variable \"{}\" has shards 0 to {}, not {}", variable.name(),
                            shards.size() - 1, shard));
  }
  return Colocation(implementation_.get(), shards[shard].ps);
}

bool ParameterServerStrategy::variable_created_in_scope(const AnyVariable& variable) const {
  // The context is the strategy's, also of a part of a variable.
  const auto& bound = *variable.bound();
  return !bound.on_coordinator && bound.context == &implementation_->context();
}

std::shared_ptr<const ClusterResolver> ParameterServerStrategy::cluster_resolver() const {
  const auto& runtime = implementation_->runtime();
  if (runtime->resolver()) return runtime->resolver();
  return std::make_shared<MpiClusterResolver>(Cluster(runtime));
}

std::vector<std::string> ParameterServerStrategy::variables(bool trainable_only) const {
  std::vector<std::string> names;
  for (const auto& variable : implementation_->variables()) {
    if (!trainable_only || variable->descriptor.trainable) names.push_back(variable->descriptor.name);
  }
  return names;
}

std::vector<PsLoad> ParameterServerStrategy::loads() { return implementation_->loads(); }

namespace {

/// "w/part_0, b", or the first few and how many more there are.
std::string names_of(const PsLoad& load) {
  constexpr std::size_t kMostNames = 4;
  const auto& names = load.shard_names;
  const std::size_t shown = std::min(names.size(), kMostNames);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

std::string ParameterServerStrategy::describe_loads() {
  std::string table =
      fmt::format("{:>4} {:<16} {:>7} {:>15} {:>12} {:>14} {:>15} {:>12}  {}\n", "ps", "host", "shards",
                  "bytes", "pushes", "rows pushed", "bytes pushed", "rows sent", "names");
  for (const PsLoad& load : loads()) {
    table += fmt::format("{:>4} {:<16} {:>7} {:>15} {:>12} {:>14} {:>15} {:>12}  {}\n", load.ps, load.host,
                         load.shards, load.bytes, load.pushes, load.rows_pushed, load.bytes_pushed,
                         load.rows_sent, names_of(load));
  }
  return table;
}

}  // namespace capstan
