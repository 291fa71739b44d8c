// runtime.hpp -- a rank that has joined a job: its settings, its members, its fabrics.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "cluster/membership/coordinator_memory.hpp"
#include "cluster/membership/membership.hpp"
#include "cluster/traffic.hpp"
#include "transport/fabric.hpp"

namespace capstan {
class ClusterResolver;
}
namespace capstan::transport {
class LoopHub;
}
namespace capstan::io {
class TraceFile;
}

namespace capstan::cluster {

/// A coordinator and a worker have two fabrics, each owned by one thread: `control` by the thread that
/// dispatches or receives closures, `data` by the thread that runs user code and transfers parameters.
/// Replica threads and strategy::Receiver share `data` under a lock. A ps has one fabric,
/// which one thread uses.
///
/// Every part of a rank has a reference to this object, so it has more functions than most classes; most look
/// something up. `member`, `count`, `name_of`, `members` and `table` are shorthands of `membership()`.
class Runtime {
 public:
  /// `own_member`: the member of this process, if it is not in the table.
  Runtime(Settings settings, Table table, std::unique_ptr<transport::Fabric> control,
          std::unique_ptr<transport::Fabric> data, std::optional<Member> own_member = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Settings& settings() const noexcept { return settings_; }
  Membership& membership() noexcept { return membership_; }
  const Membership& membership() const noexcept { return membership_; }
  /// Members of the start of the job, by rank.
  const std::vector<Member>& members() const noexcept { return table().members; }
  const Table& table() const noexcept { return membership_.table(); }
  const Member& self() const noexcept { return self_; }
  /// Returns true if this rank is a worker that was restarted or joins late: the coordinator and the ps do
  /// not know it yet.
  bool joins_after_start() const noexcept { return static_cast<std::size_t>(self_.rank) >= members().size(); }
  /// Returns true if this rank joins late; the coordinator knows it already.
  bool joins_late() const noexcept { return joins_after_start() && table().is_late(self_.rank); }
  int count(Role role) const noexcept { return membership_.count(role); }
  const Member& member(Role role, int index) const { return membership_.member(role, index); }
  const Member& member(int rank) const { return membership_.member(rank); }
  std::string name_of(int rank) const { return membership_.name_of(rank); }
  /// Returns true in an embedded cluster, whose ranks are threads of one process.
  bool in_process() const noexcept { return in_process_; }
  /// "ps 1@node17": for log::set_rank_tag on every thread that the rank starts.
  std::string log_tag() const;

  transport::Fabric& control() noexcept { return *control_; }
  /// Returns `control()` on a ps.
  transport::Fabric& data() noexcept { return data_ ? *data_ : *control_; }

  /// Return the peer on each fabric; connect to it on first use.
  transport::Peer& control_peer(const Member& member);
  transport::Peer& data_peer(const Member& member);

  /// Ranks of an embedded cluster other than the coordinator. The strategy runs the ps, the coordinator the
  /// workers.
  const std::vector<std::shared_ptr<Runtime>>& embedded() const noexcept { return embedded_; }

  /// On the coordinator: begins the job of a strategy. There is one strategy at a time. Only an embedded
  /// cluster can have another one later, since its ranks can be recreated. Throws Error(failed_precondition).
  void begin_job();
  /// `over`: all other ranks were told that the job is over.
  void end_job(bool over) noexcept;

  /// Memory of a ps that outlives its process; null if there is none.
  const std::shared_ptr<transport::PersistentMemory>& persistent_memory() const noexcept {
    return persistent_memory_;
  }
  void set_persistent_memory(std::shared_ptr<transport::PersistentMemory> memory) {
    persistent_memory_ = std::move(memory);
  }
  /// Returns true if the agent of a ps that dies may restart it.
  bool ps_may_return() const {
    return table().restarts > 0 && settings_.text("ps-restart") == "on" && !ps_have_replicas();
  }
  /// Returns true with --replicas-of-ps 2: the spare with the index of a ps is its replica, and replaces it.
  bool ps_have_replicas() const { return settings_.integer("replicas-of-ps") > 1 && count(Role::spare) > 0; }
  /// Returns true if the agent of a dead ps may restart it, or a spare may replace it.
  bool ps_may_be_replaced() const { return ps_may_return() || count(Role::spare) > 0; }
  /// Direct this thread's fabric to the process that replaced the process of a ps. Not inside progress().
  void reconnect_ps_on_control(const Member& ps);
  void reconnect_ps_on_data(const Member& ps);
  /// Ends waits of the data fabric for this rank, because its process is dead. Also inside progress().
  void drop_data_peer(int rank) noexcept;
  /// This rank, a spare, replaces a ps and has its rank and index from now on. REQUIRES: `ps` has the
  /// addresses of this process; no other thread uses this object.
  void become(const Member& ps);
  /// Maximum time that callers wait until the agent of a dead ps has restarted it, or a spare replaced it.
  std::chrono::milliseconds ps_timeout() const {
    return settings_.duration("ps-wait") + (count(Role::spare) > 0 ? 10 : 0) * wait_timeout();
  }
  /// Ends all waits for a dead ps, because the coordinator decided that no process replaces it. Does not
  /// change the state of the member. Any thread.
  void give_up_ps() noexcept { ps_given_up_ = true; }
  bool ps_given_up() const noexcept { return ps_given_up_; }

  /// Returns true if the agent of a killed coordinator may restart it; other ranks wait coordinator_wait().
  bool coordinator_may_return() const noexcept { return !in_process_ && table().coordinator_may_return(); }
  std::chrono::milliseconds coordinator_wait() const {
    return std::chrono::milliseconds(table().coordinator_wait);
  }
  /// Directs this rank's fabrics to the process that replaced the coordinator's process. Not inside
  /// progress(). Called by the thread that drives the control fabric.
  void coordinator_returned(const Member& coordinator);
  /// On the coordinator: the record that outlives its process, and the number of its restarts.
  CoordinatorMemory& coordinator_memory() noexcept { return coordinator_memory_; }
  int incarnation() const noexcept { return incarnation_; }
  /// On the coordinator, once: reads the record of the previous process, and applies it to the members.
  void load_record(std::shared_ptr<transport::PersistentMemory> memory, int incarnation);

  /// The resolver that described the cluster; null if there was none.
  const std::shared_ptr<const ClusterResolver>& resolver() const noexcept { return resolver_; }
  void set_resolver(std::shared_ptr<const ClusterResolver> resolver) { resolver_ = std::move(resolver); }

  /// The trace of this rank; null without --trace.
  io::TraceFile* trace() const noexcept { return trace_.get(); }
  /// Starts the trace, in a file of `directory`.
  void trace_to(const std::filesystem::path& directory);

  /// Counts of this rank's pulls and pushes.
  Traffic& traffic() noexcept { return traffic_; }

  /// Timeout of any wait for another rank.
  std::chrono::milliseconds wait_timeout() const { return settings_.duration("wait-timeout"); }

  /// Returns the runtimes of ranks that are threads, in rank order. Roles are assigned as for one host.
  static std::vector<std::shared_ptr<Runtime>> as_threads(const Settings& settings, int ranks,
                                                          transport::LoopHub& hub);
  /// Creates all roles in this process. Returns the coordinator's runtime, which holds the others.
  static std::shared_ptr<Runtime> embedded_cluster(const Settings& settings);

 private:
  void make_ranks_again();

  enum class Job : std::uint8_t { none, runs, over };

  Settings settings_;
  std::shared_ptr<const ClusterResolver> resolver_;
  Member self_;
  Membership membership_;
  std::atomic<bool> ps_given_up_{false};
  std::unique_ptr<transport::Fabric> control_;
  std::unique_ptr<transport::Fabric> data_;
  std::vector<transport::Peer*> control_peers_;  // by rank, null until connected; the fabrics own them
  std::vector<transport::Peer*> data_peers_;
  std::vector<std::shared_ptr<Runtime>> embedded_;
  bool in_process_ = false;
  std::atomic<Job> job_{Job::none};
  std::shared_ptr<transport::PersistentMemory> persistent_memory_;
  CoordinatorMemory coordinator_memory_;
  int incarnation_ = 0;
  Traffic traffic_;
  std::unique_ptr<io::TraceFile> trace_;
};

/// Returns the name of this host, up to the first dot.
std::string host_name();

}  // namespace capstan::cluster
