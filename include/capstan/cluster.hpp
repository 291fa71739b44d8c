// cluster.hpp -- a job: its settings, its ranks, and the role of this rank.
//
// A program calls `Cluster::join` first. The same binary runs as every role:
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

/// A field is the setting of the same name, with hyphens for underscores; docs/settings.md describes each and
/// lists those that must be equal on every rank. Cluster::join throws Error(invalid_argument) for a value out
/// of range. Sizes are in bytes. A field that differs from its default counts as set by the program: a file,
/// a CAPSTAN_* variable and an argument override it, in this order.
struct ClusterOptions {
  // Roles of the ranks and their placement.
  int ps = 0;                       ///< number of ranks; 0: chosen by the number of ranks and nodes
  int workers = 0;                  ///< number of ranks; 0: all remaining ranks
  std::string roles = {};           ///< all roles in one line: "coordinator:1,ps:4,worker:*"
  std::string role_map = "spread";  ///< spread, pack, ps-per-node, dedicated, local
  std::string role_file = {};       ///< file that assigns roles to ranks or hosts, read by rank 0
  std::string role = {};            ///< role of this rank; empty: by role_map
  bool evaluator = false;           ///< one rank evaluates checkpoints
  int replicas_of_ps = 1;           ///< processes that hold each ps's shards: 1 or 2
  int spares = 0;                   ///< ranks that replace a ps whose host died
  std::string bind = "auto";        ///< bind to the NUMA node of the adapter or GPU: auto, off

  // Faults.
  std::string supervise = "on";   ///< run each rank under an agent process: on, off
  int max_restarts = 3;           ///< how often an agent restarts its worker or ps
  std::string ps_restart = "on";  ///< a restarted ps resumes with its shards: on, off
  std::chrono::milliseconds ps_wait = std::chrono::seconds(4);       ///< wait for a dead or unreachable ps
  std::chrono::milliseconds worker_wait = std::chrono::seconds(60);  ///< wait for a worker when none is left
  std::chrono::milliseconds coordinator_wait{0};  ///< wait for a killed coordinator; 0: the job ends with it
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(5);  ///< silence of a worker; 0: never
  std::chrono::milliseconds deadline_grace =
      std::chrono::seconds(5);  ///< from a closure's deadline until its worker is restarted; 0: never

  // The run directory and the output in it.
  std::string run_dir = {};  ///< for `capstan status`, late workers, logs and metrics
  std::chrono::milliseconds metrics_every = std::chrono::seconds(10);  ///< interval; 0: never
  bool trace = false;                                                  ///< write RUN_DIR/trace.json
  std::string prometheus_file = {};                                    ///< empty: none
  int late_workers = 16;          ///< maximum number of workers that join after the start, in total
  std::string join_address = {};  ///< where the coordinator listens for late workers: HOST or HOST:PORT
  std::string join = {};          ///< run directory of the job that this process joins as a worker
  std::string log_level = {};     ///< trace, debug, info, warn, error, off; empty: info or warn, by role

  // How ranks find and reach each other.
  std::string bootstrap = "auto";  ///< auto, mpi, tf-config, alone
  std::chrono::milliseconds start_timeout = std::chrono::seconds(60);
  std::chrono::milliseconds wait_timeout = std::chrono::seconds(60);  ///< of each wait after the start
  std::uint64_t push_ring_bytes = std::uint64_t{1} << 20;             ///< per pair of worker and ps
  int ps_threads = 1;                      ///< with which a ps applies a push to rows in its main memory
  std::uint64_t checkpoint_bandwidth = 0;  ///< limit of each ps's writes in bytes/s; 0: none
  std::string checkpoint_fast_dir = {};    ///< local directory for the fast level of checkpoints
  std::uint64_t heap_slab_bytes = std::uint64_t{64} << 20;
  std::string window = "auto";            ///< how a worker reaches a ps: auto, mapped, rma, am
  std::string require_transport = "any";  ///< any, rdma, mapped

  // Scheduling.
  int max_inflight_per_worker = 0;                        ///< closures; 0: chosen by their duration
  int queue_limit = 262144;                               ///< closures queued before schedule() blocks
  std::chrono::milliseconds watchdog_timeout{0};          ///< until closures count as stalled; 0: never
  std::chrono::milliseconds schedule_start_delay{0};      ///< worker i starts after i times this delay
  std::chrono::milliseconds schedule_start_delay_max{0};  ///< maximum of that delay; 0: none
  std::string nan_gradients = "pass";                     ///< pass, refuse, skip

  // Replicas and GPUs.
  int replicas = 1;                     ///< threads of each worker that run() uses
  std::string replica_device = "host";  ///< host, gpu
  std::string gpu_transfer = "auto";    ///< auto, staged, direct
  int gpu_stand_ins = 0;                ///< simulated GPUs per rank; 0: real GPUs
  bool gpu_deterministic = false;       ///< bitwise reproducible results
};

class ClusterResolver;
namespace cluster {
class Runtime;
}

/// Sent over the wire: add at the end, never renumber.
enum class Role : std::uint8_t { coordinator = 0, ps = 1, worker = 2, evaluator = 3, spare = 4 };

CAPSTAN_API std::string_view to_string(Role role) noexcept;

/// One rank's membership in a cluster. Copies, and objects made with them, such as a strategy, share the
/// membership. It ends when the last of them is destroyed.
class CAPSTAN_API Cluster {
 public:
  /// Detects how the program was started and joins the cluster accordingly:
  ///  * by mpirun or srun with three ranks or more: the process splits into an agent, which
  ///    supervises, and its child, in which this call returns. MPI is finalized before it returns. If a
  ///    worker dies, its agent restarts it, so this call returns again in a new process. The
  ///    coordinator's agent does the same if --coordinator-wait is set.
  ///  * as one of the tasks of TF_CONFIG, by hand or by another scheduler, without MPI: all tasks connect to
  ///    the address of the chief, which is the coordinator. Each has its own agent, but no launcher.
  ///  * by `capstan join RUN_DIR`, or with CAPSTAN_JOIN=RUN_DIR: as an additional worker of a job that runs
  ///    with --run-dir RUN_DIR. On SIGTERM it finishes its current closure, then leaves.
  ///  * alone: every role in this process (`embedded()`); no launcher is needed.
  /// Call it first in main, before any thread is started. Settings come from the arguments
  /// `--capstan-NAME=VALUE`, which are removed from argv, then CAPSTAN_* variables, then the file of
  /// CAPSTAN_CONFIG, then `options`: the first source that has a setting determines it. Throws Error:
  /// invalid_argument for two ranks, and for roles that do not fit; deadline_exceeded naming missing ranks;
  /// failed_precondition if binaries differ, if a rank of a job calls it again, or if srun has started
  /// several tasks that cannot reach MPI.
  static Cluster join(int& argc, char** argv, const ClusterOptions& options = {});
  /// As above, without arguments.
  static Cluster join(const ClusterOptions& options);
  /// Joins as the task that the resolver describes, however this process was started. As with TF_CONFIG, the
  /// tasks connect to the chief's address. Ignores the resolver in a process that `capstan join` started,
  /// which becomes an additional worker. Arguments and settings are as above. Throws the errors of join and
  /// of validate_cluster, and Error(invalid_argument) for a description without this process's task or
  /// without a chief.
  static Cluster join(int& argc, char** argv, const ClusterResolver& resolver,
                      const ClusterOptions& options = {});
  static Cluster join(const ClusterResolver& resolver, const ClusterOptions& options = {});

  explicit Cluster(std::shared_ptr<cluster::Runtime> runtime) : runtime_(std::move(runtime)) {}

  Role role() const noexcept;
  /// Index among the ranks of the same role, from 0.
  int index() const noexcept;
  /// Number of ranks of a role at the start of the job; size() counts the ranks of all roles.
  int count(Role role) const noexcept;
  int rank() const noexcept;
  int size() const noexcept;
  /// Returns true if this coordinator was restarted in place of one that was killed (--coordinator-wait). Ps
  /// and workers are still running. The program must then create the same variables and counters under the
  /// same names, which attaches to the existing ones with their current values. It must assign nothing, and
  /// resume after recorded_step(). See docs/failures.md for the guarantees.
  bool recovered() const noexcept;
  /// The last step passed to ClusterCoordinator::record_step, in this process or a predecessor; nullopt
  /// before the first such call, and after a checkpoint was restored. Coordinator only. Throws
  /// Error(data_loss) in a recovered coordinator that cannot resume after this step because more than 50,000
  /// functions were scheduled since: restore a checkpoint.
  std::optional<std::int64_t> recorded_step() const;
  /// Returns true if all roles run in this process.
  bool embedded() const noexcept;
  /// "ps 1 (rank 2 on node17)"
  std::string name() const;

  /// Internal: for the layers above, not for programs.
  const std::shared_ptr<cluster::Runtime>& runtime() const noexcept { return runtime_; }

 private:
  std::shared_ptr<cluster::Runtime> runtime_;
};

/// Runs the role of this rank until the job ends: a ps serves its shards, a worker runs closures.
class CAPSTAN_API Server {
 public:
  explicit Server(const Cluster& cluster) : cluster_(cluster) {}

  /// Blocks until the job ends. Returns the exit code for main: 0 at the end of the job, 4 if the coordinator
  /// died, 1 if this worker was silent for too long and counts as dead. Errors are logged.
  int join();

 private:
  Cluster cluster_;
};

}  // namespace capstan
