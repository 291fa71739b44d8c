// cluster.hpp -- a job: its settings, its ranks, and the role of this one.
//
// `Cluster::join` is the first thing a program does. The same binary runs as every role:
//
//   cs::Cluster cluster = cs::Cluster::join(argc, argv);
//   if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/detail/export.hpp"

namespace capstan {

/// A field is the setting of the same name, with hyphens for underscores; docs/settings.md describes each of
/// them, and names those that must be the same on every rank. Values out of range are refused by
/// Cluster::join, with Error(invalid_argument). Sizes are in bytes. A field that differs from its default
/// counts as given by the program: a file, a CAPSTAN_* variable and an argument override it, in this order.
struct ClusterOptions {
  // Roles of the ranks, and where they run.
  int ps = 0;                       ///< ranks that hold variables; 0: chosen by the number of ranks and nodes
  int workers = 0;                  ///< ranks that compute; 0: the rest
  std::string roles = {};           ///< all roles in one line: "coordinator:1,ps:4,worker:*"
  std::string role_map = "spread";  ///< spread, pack, ps-per-node, dedicated, local
  std::string role_file = {};       ///< a file that assigns roles to ranks or hosts; rank 0 reads it
  std::string role = {};            ///< of this rank alone; empty: by role_map
  bool evaluator = false;           ///< one rank evaluates checkpoints
  int replicas_of_ps = 1;           ///< processes that hold each ps's shards: 1 or 2
  int spares = 0;                   ///< ranks that replace a ps which is lost with its host
  std::string bind = "auto";        ///< to the NUMA node of the adapter or GPU: auto, off

  // Faults.
  std::string supervise = "on";   ///< under an agent process: on, off
  int max_restarts = 3;           ///< of a worker or ps, by its agent
  std::string ps_restart = "on";  ///< a ps that is killed continues with its shards: on, off
  std::chrono::milliseconds ps_wait = std::chrono::seconds(4);       ///< for a ps that died or is unreachable
  std::chrono::milliseconds worker_wait = std::chrono::seconds(60);  ///< where no worker is left
  std::chrono::milliseconds coordinator_wait{0};  ///< for one that was killed; 0: the job ends with it
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(5);  ///< 0: never
  std::chrono::milliseconds deadline_grace =
      std::chrono::seconds(5);  ///< after a closure's deadline; 0: never

  // The run directory, and what is written there.
  std::string run_dir = {};  ///< for `capstan status`, late workers, logs and metrics
  std::chrono::milliseconds metrics_every = std::chrono::seconds(10);  ///< 0: never
  bool trace = false;                                                  ///< RUN_DIR/trace.json
  std::string prometheus_file = {};
  int late_workers = 16;          ///< most workers that join after the start, in all
  std::string join_address = {};  ///< where the coordinator listens for them: HOST or HOST:PORT
  std::string join = {};          ///< run directory of the job that this process joins as a worker
  std::string log_level = {};     ///< trace, debug, info, warn, error, off; empty: info or warn, by role

  // How ranks find and reach each other.
  std::string bootstrap = "auto";  ///< auto, mpi, tf-config, alone
  std::chrono::milliseconds start_timeout = std::chrono::seconds(60);
  std::chrono::milliseconds wait_timeout = std::chrono::seconds(60);  ///< of every later wait
  std::uint64_t push_ring_bytes = std::uint64_t{8} << 20;             ///< by worker and ps
  std::uint64_t checkpoint_bandwidth = 0;  ///< bytes a second that each ps writes; 0: no limit
  std::string checkpoint_fast_dir = {};    ///< where each ps writes its part of a checkpoint first
  std::uint64_t heap_slab_bytes = std::uint64_t{64} << 20;
  std::string window = "auto";            ///< how a worker reaches a ps: auto, mapped, rma, am
  std::string require_transport = "any";  ///< any, rdma, mapped

  // Scheduling.
  int max_inflight_per_worker = 0;                    ///< closures; 0: chosen by their duration
  int queue_limit = 262144;                           ///< closures that are queued before schedule() blocks
  std::chrono::milliseconds watchdog_timeout{0};      ///< until closures count as stalled; 0: never
  std::chrono::milliseconds schedule_start_delay{0};  ///< of worker i, times i
  std::chrono::milliseconds schedule_start_delay_max{0};  ///< 0: any
  std::string nan_gradients = "pass";                     ///< pass, refuse, skip

  // Replicas and GPUs.
  int replicas = 1;                     ///< threads of a worker that run() uses
  std::string replica_device = "host";  ///< host, gpu
  std::string gpu_transfer = "auto";    ///< auto, staged, direct
  int gpu_stand_ins = 0;                ///< simulated GPUs of each rank; 0: the real ones
  bool gpu_deterministic = false;       ///< the same bits in every run
};

class ClusterResolver;
namespace cluster {
class Runtime;
}

/// Sent over the wire: add at the end, never renumber.
enum class Role : std::uint8_t { coordinator = 0, ps = 1, worker = 2, evaluator = 3, spare = 4 };

CAPSTAN_API std::string_view to_string(Role role) noexcept;

/// One rank's place in the cluster. Movable; the last copy that anything holds ends this rank's membership.
class CAPSTAN_API Cluster {
 public:
  /// Finds out how the program was started and takes its place:
  ///  * by mpirun or srun with three ranks or more: the process splits into an agent, which
  ///    supervises, and its child, which is where this call returns. MPI is finished before it returns. The
  ///    agent of a worker that dies starts it again: another return from here, in a new process. So does
  ///    the coordinator's, where --coordinator-wait is set.
  ///  * as one of the tasks of TF_CONFIG, by hand or by another scheduler, without MPI: all tasks meet at the
  ///    address of the chief, which is the coordinator. Each has its agent, and nobody else to end it.
  ///  * by `capstan join RUN_DIR`, or with CAPSTAN_JOIN=RUN_DIR: as one more worker of a job that runs with
  ///    --run-dir RUN_DIR. SIGTERM lets it end what it is at, and leave.
  ///  * alone: every role in this process (`embedded()`), no launcher needed.
  /// Call it first in main, before any thread is started. Settings are the arguments
  /// `--capstan-NAME=VALUE`, which are taken out, then CAPSTAN_* variables, then the file of CAPSTAN_CONFIG,
  /// then `options`: the first of these that gives a setting counts. Throws Error: invalid_argument for two
  /// ranks or roles that do not fit, deadline_exceeded with their names when ranks are missing,
  /// failed_precondition when binaries differ, when a rank of a job calls it again, or srun has started
  /// several tasks that cannot reach MPI.
  static Cluster join(int& argc, char** argv, const ClusterOptions& options = {});
  /// The same without arguments.
  static Cluster join(const ClusterOptions& options);
  /// As the task that the resolver describes, whatever started this process: the tasks meet at the chief's
  /// address, as they do with TF_CONFIG. A process that `capstan join` started is one more worker all the
  /// same. Arguments and settings as above. Throws Error(invalid_argument) as validate_cluster does, and for
  /// a description without the task of this process or without a chief.
  static Cluster join(int& argc, char** argv, const ClusterResolver& resolver,
                      const ClusterOptions& options = {});
  static Cluster join(const ClusterResolver& resolver, const ClusterOptions& options = {});

  explicit Cluster(std::shared_ptr<cluster::Runtime> runtime) : runtime_(std::move(runtime)) {}

  Role role() const noexcept;
  /// Among the ranks of the same role, from 0.
  int index() const noexcept;
  /// Of the ranks that were there at the start, as `size`.
  int count(Role role) const noexcept;
  int rank() const noexcept;
  int size() const noexcept;
  /// This coordinator was started again in place of one that was killed (--coordinator-wait). Ps and workers
  /// have gone on: create the same variables and counters again, under the same names, which finds them as
  /// they are; assign nothing, and go on after recorded_step(). docs/failures.md says what holds then.
  bool recovered() const noexcept;
  /// The last step of ClusterCoordinator::record_step, in this process or an earlier one; nothing before the
  /// first, and since a checkpoint was restored. Of the coordinator. Throws Error(data_loss) in one that is
  /// back and cannot go on from there, as more than 50,000 functions were scheduled since: restore a
  /// checkpoint.
  std::optional<std::int64_t> recorded_step() const;
  /// Every role in this process.
  bool embedded() const noexcept;
  /// "ps 1 (rank 2 on node17)"
  std::string name() const;

  /// For the layers above; not for programs.
  const std::shared_ptr<cluster::Runtime>& runtime() const noexcept { return runtime_; }

 private:
  std::shared_ptr<cluster::Runtime> runtime_;
};

/// A ps serves its shards, a worker runs closures, until the coordinator says that the job is over.
class CAPSTAN_API Server {
 public:
  explicit Server(const Cluster& cluster) : cluster_(cluster) {}

  /// Returns the exit code for main: 0 at the end of the job, 4 when the coordinator has died, 1 when this
  /// worker has been silent for too long and counts as dead. Errors are logged.
  int join();

 private:
  Cluster cluster_;
};

}  // namespace capstan
