// resolvers.hpp -- descriptions of a cluster from TF_CONFIG, Slurm, a Cluster that this process has joined,
// or the program itself.
//
//   const cs::TFConfigClusterResolver resolver;
//   cs::validate_cluster(resolver);
//   std::cout << *resolver.task_type() << " " << resolver.master("ps", 0);
//
// A resolver only describes: it starts no process and connects to none. Any number of threads may read a
// resolver that no thread changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capstan/cluster.hpp"
#include "capstan/detail/export.hpp"

namespace capstan {

/// Task addresses by job: {{"chief", {"h0:2222"}}, {"worker", {"h1:2222"}}, {"ps", {"h2:2222"}}}.
struct CAPSTAN_API ClusterSpec {
  std::map<std::string, std::vector<std::string>> jobs;

  bool empty() const noexcept { return jobs.empty(); }
  int task_count(const std::string& job) const;
  /// Throws Error(invalid_argument) for a task that does not exist.
  const std::string& task_address(const std::string& job, int task_id) const;
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

/// Checks that a ParameterServerStrategy can use the spec and, if `task_type` is given, the task. Throws
/// Error(invalid_argument) for the first problem, in this order: an empty spec; a job other than chief,
/// worker, ps and evaluator; a task_type other than these, or one that the spec lacks (except evaluator); two
/// chiefs; two evaluators; a task_id that is missing, negative or not in the spec; no ps; no worker.
CAPSTAN_API void validate_cluster(const ClusterSpec& spec, const std::optional<std::string>& task_type = {},
                                  std::optional<int> task_id = {});

/// The next three throw Error(invalid_argument) for a job other than chief, worker, ps and evaluator, for two
/// chiefs or evaluators, and for a task that the spec does not have. An evaluator may be missing in the spec.

/// Returns true for the chief, for worker 0 if there is no chief, and for an evaluator, which is alone in its
/// own cluster.
CAPSTAN_API bool is_chief(const ClusterSpec& spec, const std::string& task_type, int task_id);
/// Number of tasks that compute: the chief and the workers; 1 for an evaluator. Throws
/// Error(invalid_argument) for a ps.
CAPSTAN_API int worker_count(const ClusterSpec& spec, const std::string& task_type);
/// Index among the tasks that compute: the chief is 0, workers follow. Throws Error(invalid_argument) for a
/// ps.
CAPSTAN_API int id_in_cluster(const ClusterSpec& spec, const std::string& task_type, int task_id);

/// Device names on which the first generation of the strategy computes and stores variables.
struct DevicePlan {
  std::string worker;                 ///< "/job:worker/task:1"; "" in local mode
  std::vector<std::string> compute;   ///< one per replica: the GPUs, or the CPU if there are none
  std::vector<std::string> variable;  ///< assigned to new variables round-robin
  bool chief = true;
  int num_replicas_in_sync() const noexcept { return static_cast<int>(compute.size()); }
};

/// Applies the rules of the first generation's constructor. `gpus_per_worker` GPUs compute, or the CPU if
/// that is 0. Without a spec (local mode), variables are on the GPU if there is exactly one, else on the CPU.
/// With a spec, variables are on its ps. Throws Error(invalid_argument) for a spec without task_type and
/// task_id or without ps, for negative gpus_per_worker, and as is_chief does.
CAPSTAN_API DevicePlan plan_devices(const ClusterSpec& spec = {},
                                    const std::optional<std::string>& task_type = {},
                                    std::optional<int> task_id = {}, int gpus_per_worker = 0);

/// The parts of a process's environment that resolvers read, once, in their constructor.
struct CAPSTAN_API Environment {
  std::function<std::optional<std::string>(const std::string& name)> variable;
  std::function<int()> gpus;  ///< returns the number of this host's GPUs; called if no variable gives it

  /// Environment variables of this process and the NVIDIA devices in /dev.
  static Environment of_process();
  static Environment of(std::map<std::string, std::string> variables, int gpus = 0);

  /// Entries of CUDA_VISIBLE_DEVICES, as CUDA parses it; nullopt if it is not set.
  std::optional<std::vector<std::string>> visible_devices() const;
  /// Number of visible devices; gpus() if CUDA_VISIBLE_DEVICES is not set.
  int visible_gpus() const;
};

/// The task of this process, and the protocol that reaches tasks ("grpc").
struct TaskOptions {
  std::optional<std::string> task_type = {};
  std::optional<int> task_id = {};
  std::optional<std::string> rpc_layer = {};
};

/// Queries `master` for the device names of tasks: "/job:worker/task:0/device:GPU:0", ...
using ListDevices = std::function<std::vector<std::string>(const std::string& master)>;

/// A description of a cluster and of this process's task in it. For a source that the resolvers below do not
/// support, derive a class from this one.
class CAPSTAN_API ClusterResolver {
 public:
  virtual ~ClusterResolver() = default;

  virtual ClusterSpec cluster_spec() const = 0;
  /// "" unless the resolver was given another value.
  virtual std::string environment() const { return ""; }

  /// The value given to the constructor or a setter; otherwise the detected one.
  std::optional<std::string> task_type() const { return own_task_type(); }
  std::optional<int> task_id() const { return own_task_id(); }
  std::optional<std::string> rpc_layer() const { return own_rpc_layer(); }
  void set_task_type(std::string task_type) { own_.task_type = std::move(task_type); }
  void set_task_id(int task_id) { own_.task_id = task_id; }
  void set_rpc_layer(std::string rpc_layer) { own_.rpc_layer = std::move(rpc_layer); }

  /// Address of a task, by default of this process's, as "host:port" or "rpc_layer://host:port". Resolvers
  /// document exceptions. Throws Error(invalid_argument) for a task that is not in the cluster.
  std::string master(const std::optional<std::string>& task_type = {}, std::optional<int> task_id = {},
                     const std::optional<std::string>& rpc_layer = {}) const;

  /// Number of the task's accelerators by type: {{"GPU", 2}}. Throws Error(failed_precondition) if only the
  /// task itself can determine it.
  std::map<std::string, int> num_accelerators(const std::optional<std::string>& task_type = {},
                                              std::optional<int> task_id = {}) const;

 protected:
  explicit ClusterResolver(TaskOptions own = {}) : own_(std::move(own)) {}
  ClusterResolver(const ClusterResolver&) = default;
  ClusterResolver& operator=(const ClusterResolver&) = default;

  virtual std::optional<std::string> own_task_type() const { return own_.task_type; }
  virtual std::optional<int> own_task_id() const { return own_.task_id; }
  virtual std::optional<std::string> own_rpc_layer() const { return own_.rpc_layer; }
  /// Implements master(); `asked` holds its arguments. By default, returns the address of the task in
  /// `asked`, whose missing fields are taken from this process's task.
  virtual std::string find_master(const TaskOptions& asked) const;
  virtual std::map<std::string, int> count_accelerators(const TaskOptions& asked) const = 0;

  /// Address of a task in cluster_spec(). Throws Error(invalid_argument) if there is no such task.
  std::string address_of(const TaskOptions& task) const;
  /// Counts the devices that `list` returns for the requested task, by default this process's task; all
  /// devices if neither task is known. Without a `list`, returns `visible` GPUs for this process's task, and
  /// throws Error(failed_precondition) for another task.
  std::map<std::string, int> count_devices(const ListDevices& list, int visible,
                                           const TaskOptions& asked) const;
  void set_own(TaskOptions own) { own_ = std::move(own); }
  /// Fills missing fields of `asked` from this process's task.
  TaskOptions or_own(const TaskOptions& asked) const;

 private:
  TaskOptions own_;
};

struct SimpleOptions {
  std::string master = {};  ///< result of master() without a task
  std::optional<std::string> task_type = {};
  std::optional<int> task_id = {};
  std::string environment = {};
  std::map<std::string, int> num_accelerators = {};
  std::optional<std::string> rpc_layer = {};
};

/// A description given by the program.
class CAPSTAN_API SimpleClusterResolver final : public ClusterResolver {
 public:
  explicit SimpleClusterResolver(ClusterSpec spec, SimpleOptions options = {});

  ClusterSpec cluster_spec() const override { return spec_; }
  std::string environment() const override { return options_.environment; }

 private:
  std::string find_master(const TaskOptions& asked) const override;
  std::map<std::string, int> count_accelerators(const TaskOptions& asked) const override;

  ClusterSpec spec_;
  SimpleOptions options_;
};

/// The union of several clusters: tasks of a job that occurs in several are concatenated in the order of the
/// resolvers. Everything else that neither the constructor nor a setter gives is taken from the first
/// resolver, including master() without a task.
class CAPSTAN_API UnionClusterResolver final : public ClusterResolver {
 public:
  /// Throws Error(invalid_argument) if `resolvers` is empty or contains null.
  explicit UnionClusterResolver(std::vector<std::shared_ptr<const ClusterResolver>> resolvers,
                                TaskOptions own = {});

  ClusterSpec cluster_spec() const override;
  std::string environment() const override { return resolvers_[0]->environment(); }

 private:
  std::optional<std::string> own_task_type() const override;
  std::optional<int> own_task_id() const override;
  std::optional<std::string> own_rpc_layer() const override;
  std::string find_master(const TaskOptions& asked) const override;
  std::map<std::string, int> count_accelerators(const TaskOptions& asked) const override;

  std::vector<std::shared_ptr<const ClusterResolver>> resolvers_;
};

struct TFConfigOptions {
  std::optional<std::string> task_type = {};  ///< this and the next two override TF_CONFIG
  std::optional<int> task_id = {};
  std::optional<std::string> rpc_layer = {};
  std::string environment = {};
  ListDevices list_devices = {};
  Environment process = Environment::of_process();
};

/// The environment variable TF_CONFIG:
///   {"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", "h2:2222"], "ps": ["h3:2222"]},
///    "task": {"type": "worker", "index": 0}, "rpc_layer": "grpc", "session_master": "h0:2222"}
/// All parts are optional; if the variable is unset or empty, the cluster is empty. master() returns
/// session_master if it is given, and otherwise "" if the cluster has at most one task.
class CAPSTAN_API TFConfigClusterResolver final : public ClusterResolver {
 public:
  /// Throws Error(invalid_argument) that names the position in TF_CONFIG and the expected value.
  explicit TFConfigClusterResolver(TFConfigOptions options = {});

  ClusterSpec cluster_spec() const override { return spec_; }
  std::string environment() const override { return environment_; }

 private:
  std::string find_master(const TaskOptions& asked) const override;
  std::map<std::string, int> count_accelerators(const TaskOptions& asked) const override;

  ClusterSpec spec_;
  std::optional<std::string> session_master_;
  std::string environment_;
  ListDevices list_devices_;
  int visible_gpus_ = 0;
};

/// The resolver to use if the program gives none: TF_CONFIG's if that is set and not empty, else null.
CAPSTAN_API std::unique_ptr<ClusterResolver> default_cluster_resolver(
    const Environment& process = Environment::of_process());

/// Number of tasks on a host.
struct HostTasks {
  std::string host;
  int tasks = 0;
  friend bool operator==(const HostTasks&, const HostTasks&) = default;
};

struct SlurmOptions {
  std::map<std::string, int> jobs = {};  ///< number of tasks by job; empty: all are workers
  int port_base = 8888;
  /// Default: SLURM_GPUS_ON_NODE, SLURM_STEP_GPUS, CUDA_VISIBLE_DEVICES.
  std::optional<int> gpus_per_node = {};
  std::optional<int> gpus_per_task = {};   ///< default: gpus_per_node / maximum of tasks per node
  std::optional<int> tasks_per_node = {};  ///< on each host; overrides SLURM_STEP_TASKS_PER_NODE
  std::vector<HostTasks> hosts = {};       ///< in rank order; overrides Slurm's lists of nodes and tasks
  std::optional<int> rank = {};            ///< overrides SLURM_PROCID
  std::string rpc_layer = "grpc";
  Environment process = Environment::of_process();
};

/// The Slurm step of this process: SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE and SLURM_PROCID; in a
/// batch script, the job: SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE. For a heterogeneous job, all
/// components of the step in order (SLURM_HET_SIZE and SLURM_JOB_NODELIST_HET_GROUP_n).
///
/// Jobs, sorted by name, take consecutive ranks: {{"ps", 1}, {"worker", 2}} makes rank 0 the ps. A task's
/// port is port_base plus its index on its host. Ranks are placed on hosts according to SLURM_DISTRIBUTION.
class CAPSTAN_API SlurmClusterResolver final : public ClusterResolver {
 public:
  /// Throws Error: failed_precondition outside of Slurm, under an mpirun within Slurm, and if the allocation
  /// does not match the options; invalid_argument for a malformed list or number.
  explicit SlurmClusterResolver(SlurmOptions options = {});

  ClusterSpec cluster_spec() const override { return spec_; }
  int gpus_per_node() const noexcept { return gpus_per_node_; }
  int gpus_per_task() const noexcept { return gpus_per_task_; }

  /// This task's GPUs in the format of CUDA_VISIBLE_DEVICES: gpus_per_task() of the GPUs visible to the
  /// process now, selected by the task's index on the host, or all of them if Slurm has bound the task to
  /// exactly that number. Throws Error(failed_precondition) if fewer are visible.
  std::string visible_gpus() const;
  /// Sets CUDA_VISIBLE_DEVICES of this process to visible_gpus(). Call it before CUDA is used and before
  /// threads are started.
  void set_visible_gpus() const;

 private:
  std::map<std::string, int> count_accelerators(const TaskOptions& asked) const override;

  ClusterSpec spec_;
  int gpus_per_node_ = 0;
  int gpus_per_task_ = 0;
  int local_id_ = 0;
  std::optional<std::vector<std::string>> devices_;
};

struct MpiOptions {
  std::optional<std::string> rpc_layer = {};
  ListDevices list_devices = {};
  Environment process = Environment::of_process();
};

/// The ranks of a cluster that this process has joined, however they were started: the coordinator is the
/// chief. Addresses are host names without ports, equal for all tasks of a host. The address of a ps is its
/// current host. Workers that joined late are included; the address is "" for a worker that this rank has not
/// yet learned of. Spares have no task until they replace a ps.
class CAPSTAN_API MpiClusterResolver final : public ClusterResolver {
 public:
  explicit MpiClusterResolver(Cluster cluster, MpiOptions options = {});

  ClusterSpec cluster_spec() const override;

 private:
  std::optional<std::string> own_task_type() const override;
  std::optional<int> own_task_id() const override;
  std::map<std::string, int> count_accelerators(const TaskOptions& asked) const override;

  Cluster cluster_;
  ListDevices list_devices_;
  int visible_gpus_;
};

/// Checks the resolver's spec and task with validate_cluster(ClusterSpec).
CAPSTAN_API void validate_cluster(const ClusterResolver& resolver);

}  // namespace capstan
