// cluster_options.hpp -- the settings of a job, for programs that set them themselves.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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
  std::string door_address = {};  ///< where the coordinator listens for them: HOST or HOST:PORT
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

}  // namespace capstan
