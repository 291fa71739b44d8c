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
/// dispatches or receives closures, `data` by the thread that runs user code and transfers parameters. A ps
/// has one thread and one fabric.
///
/// Every part of a rank has a reference to this object, so it has more functions than most classes; most look
/// something up. `member`, `count`, `name_of`, `members` and `table` are shorthands of `membership()`.
class Runtime {
 public:
  /// `started_again`: this rank, when it is none of the table's members.
  Runtime(Settings settings, Table table, std::unique_ptr<transport::Fabric> control,
          std::unique_ptr<transport::Fabric> data, std::optional<Member> started_again = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Settings& settings() const noexcept { return settings_; }
  Membership& membership() noexcept { return membership_; }
  const Membership& membership() const noexcept { return membership_; }
  /// Those of the start, by rank.
  const std::vector<Member>& members() const noexcept { return table().members; }
  const Table& table() const noexcept { return membership_.table(); }
  const Member& self() const noexcept { return self_; }
  /// This rank is a worker that was started again, or came late; the coordinator and the ps are to be told.
  bool started_again() const noexcept { return static_cast<std::size_t>(self_.rank) >= members().size(); }
  /// It came late, and the coordinator knows it.
  bool came_late() const noexcept { return started_again() && table().is_late(self_.rank); }
  int count(Role role) const noexcept { return membership_.count(role); }
  const Member& member(Role role, int index) const { return membership_.member(role, index); }
  const Member& member(int rank) const { return membership_.member(rank); }
  std::string name_of(int rank) const { return membership_.name_of(rank); }
  /// Part of an embedded cluster: every rank is a thread of this process.
  bool in_process() const noexcept { return in_process_; }
  /// "ps 1@node17": for log::set_rank_tag on every thread that the rank starts.
  std::string log_tag() const;

  transport::Fabric& control() noexcept { return *control_; }
  /// The same as `control()` on a ps.
  transport::Fabric& data() noexcept { return data_ ? *data_ : *control_; }

  /// Peers through each fabric, connected on first use.
  transport::Peer& control_peer(const Member& member);
  transport::Peer& data_peer(const Member& member);

  /// The ranks of an embedded cluster that live in this process besides the coordinator; the strategy takes
  /// the ps, the coordinator the workers.
  const std::vector<std::shared_ptr<Runtime>>& embedded() const noexcept { return embedded_; }

  /// On the coordinator: begins the job of a strategy, of which there is one at a time. After the end of the
  /// first the ranks of an embedded cluster are made again; others have ended with it. Throws
  /// Error(failed_precondition).
  void begin_job();
  /// `over`: every other rank was told so.
  void end_job(bool over) noexcept;

  /// Where a ps keeps what is to outlive its process; null: nowhere.
  const std::shared_ptr<transport::PersistentMemory>& persistent_memory() const noexcept {
    return kept_memory_;
  }
  void keep_in(std::shared_ptr<transport::PersistentMemory> memory) { kept_memory_ = std::move(memory); }
  /// A ps that dies may be started again on its host.
  bool ps_may_return() const {
    return table().restarts > 0 && settings_.text("ps-restart") == "on" && !ps_have_replicas();
  }
  /// Each ps has a replica, the spare with its index, which takes its place: --replicas-of-ps 2.
  bool ps_have_replicas() const { return settings_.integer("replicas-of-ps") > 1 && count(Role::spare) > 0; }
  /// The same, or a spare may take its place.
  bool ps_may_be_replaced() const { return ps_may_return() || count(Role::spare) > 0; }
  /// A ps is there again, in another process: where this thread's fabric finds it. Not inside progress().
  void ps_returned_to_control(const Member& ps);
  void ps_returned_to_data(const Member& ps);
  /// The process that this thread's fabric knows by that rank is gone: waits for it end. Any time.
  void drop_data_peer(int rank) noexcept;
  /// This rank, a spare, takes the place of a ps that is lost: its rank, index and messages are the ps's from
  /// now on. REQUIRES: `ps` has the contact of this process; no other thread uses this object.
  void become(const Member& ps);
  /// How long who needs a ps that has died waits for it: until its agent, or a spare, has taken its place.
  std::chrono::milliseconds ps_timeout() const {
    return settings_.duration("ps-wait") + (count(Role::spare) > 0 ? 10 : 0) * wait_timeout();
  }
  /// Of a ps that is lost for good, so that nobody in this process waits for it any more. Any thread.
  void give_up_ps() noexcept { ps_given_up_ = true; }
  bool ps_given_up() const noexcept { return ps_given_up_; }

  /// A coordinator that is killed may be started again; the others wait for it so long.
  bool coordinator_may_return() const noexcept { return !in_process_ && table().coordinator_may_return(); }
  std::chrono::milliseconds coordinator_wait() const {
    return std::chrono::milliseconds(table().coordinator_wait);
  }
  /// It is there again, in another process: where this rank finds it. Not inside progress(). By the thread
  /// that drives the control fabric; on a ps for both.
  void coordinator_returned(const Member& coordinator);
  /// On the coordinator: what outlives its process; and how often it has been started again. What an earlier
  /// process knew of the members is in the table.
  CoordinatorMemory& coordinator_memory() noexcept { return coordinator_memory_; }
  int incarnation() const noexcept { return incarnation_; }
  /// On the coordinator, once: takes up what an earlier process of this rank has left.
  void remember(std::shared_ptr<transport::PersistentMemory> memory, int incarnation);

  /// What the cluster was joined by; null where ranks found each other otherwise.
  const std::shared_ptr<const ClusterResolver>& resolver() const noexcept { return resolver_; }
  void set_resolver(std::shared_ptr<const ClusterResolver> resolver) { resolver_ = std::move(resolver); }

  /// Where what this rank does when is written; null without --trace.
  io::TraceFile* trace() const noexcept { return trace_.get(); }
  /// In this folder, from now on.
  void trace_to(const std::filesystem::path& folder);

  /// What this rank pulls and pushes.
  Traffic& traffic() noexcept { return traffic_; }

  /// How long any wait on another rank may last.
  std::chrono::milliseconds wait_timeout() const { return settings_.duration("wait-timeout"); }

  /// Ranks as threads over a hub, in rank order; `places` from the role map over one host.
  static std::vector<std::shared_ptr<Runtime>> as_threads(const Settings& settings, int ranks,
                                                          transport::LoopHub& hub);
  /// All roles in this process; the coordinator's runtime, which holds the others.
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
  std::shared_ptr<transport::PersistentMemory> kept_memory_;
  CoordinatorMemory coordinator_memory_;
  int incarnation_ = 0;
  Traffic traffic_;
  std::unique_ptr<io::TraceFile> trace_;
};

/// The name of this host, cut at the first dot.
std::string host_name();

}  // namespace capstan::cluster
