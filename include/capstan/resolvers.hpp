// resolvers.hpp -- where the description of a cluster comes from: TF_CONFIG, Slurm, a Cluster that
// this process has joined, or the program itself.
//
//   const cs::TFConfigClusterResolver resolver;
//   cs::validate_cluster(resolver);
//   std::cout << *resolver.task_type() << " " << resolver.master("ps", 0);
//
// A resolver describes; it starts and connects to nothing. Any number of threads may read one that nobody
// changes.
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

/// Addresses by task number, by job: {{"chief", {"h0:2222"}}, {"worker", {"h1:2222"}}, {"ps", {"h2:2222"}}}.
struct CAPSTAN_API ClusterSpec {
  std::map<std::string, std::vector<std::string>> jobs;

  bool empty() const noexcept { return jobs.empty(); }
  int task_count(const std::string& job) const;
  /// Throws Error(invalid_argument) for a task that there is not.
  const std::string& task_address(const std::string& job, int task_id) const;
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

/// Throws Error(invalid_argument) for the first that is wrong with the cluster of a ParameterServerStrategy,
/// in this order: it is empty; a job other than chief, worker, ps and evaluator; another task_type than
/// these, or one that the spec does not have, other than evaluator; two chiefs; two evaluators; a task_id
/// that is missing, negative or not in the spec; no ps; no worker. Without a task_type nothing is said of the
/// task.
CAPSTAN_API void validate_cluster(const ClusterSpec& spec, const std::optional<std::string>& task_type = {},
                                  std::optional<int> task_id = {});

/// The three below throw Error(invalid_argument) for a job other than chief, worker, ps and evaluator, for
/// two chiefs or evaluators, and for a task that the spec does not have. An evaluator need not stand in it.

/// The chief; worker 0 where there is no chief; an evaluator, which is alone in its own cluster.
CAPSTAN_API bool is_chief(const ClusterSpec& spec, const std::string& task_type, int task_id);
/// Tasks that compute: the chief and the workers. 1 for an evaluator. Throws Error(invalid_argument) for a
/// ps.
CAPSTAN_API int worker_count(const ClusterSpec& spec, const std::string& task_type);
/// Among the tasks that compute: the chief is 0, workers follow. Throws Error(invalid_argument) for a ps.
CAPSTAN_API int id_in_cluster(const ClusterSpec& spec, const std::string& task_type, int task_id);

/// Where the first generation of the strategy computes and keeps variables, as device names.
struct DevicePlan {
  std::string worker;                 ///< "" in local mode, "/job:worker/task:1"
  std::vector<std::string> compute;   ///< one a replica: the GPUs, or the CPU when there are none
  std::vector<std::string> variable;  ///< taken in turn by new variables
  bool chief = true;
  int num_replicas_in_sync() const noexcept { return static_cast<int>(compute.size()); }
};

/// The constructor's rules. Without a spec: local mode, all of this machine's GPUs compute, and variables lie
/// on the only GPU if there is exactly one, else on the CPU. With one: variables lie on its ps. Throws
/// Error(invalid_argument) for a spec without task_type and task_id, a spec without ps, and what is_chief
/// refuses.
CAPSTAN_API DevicePlan plan_devices(const ClusterSpec& spec = {},
                                    const std::optional<std::string>& task_type = {},
                                    std::optional<int> task_id = {}, int gpus_per_worker = 0);

/// What a resolver asks of the process that it is in. It asks when it is made, and not again.
struct CAPSTAN_API Environment {
  std::function<std::optional<std::string>(const std::string& name)> variable;
  std::function<int()> gpus;  ///< of this host; asked where no variable says how many

  /// Of this process: its variables, and the NVIDIA devices in /dev.
  static Environment of_process();
  static Environment of(std::map<std::string, std::string> variables, int gpus = 0);

  /// The entries of CUDA_VISIBLE_DEVICES, as CUDA reads it; nothing where it is not set.
  std::optional<std::vector<std::string>> visible_devices() const;
  /// How many those are; gpus() where it is not set.
  int visible_gpus() const;
};

/// Which task this process is, and how tasks are reached ("grpc").
struct TaskOptions {
  std::optional<std::string> task_type = {};
  std::optional<int> task_id = {};
  std::optional<std::string> rpc_layer = {};
};

/// Device names of tasks, "/job:worker/task:1/device:GPU:0", found by asking `master`.
using ListDevices = std::function<std::vector<std::string>(const std::string& master)>;

/// A description of a cluster, and of which of its tasks this process is. Derive from it for a source that is
/// none of those below.
class CAPSTAN_API ClusterResolver {
 public:
  virtual ~ClusterResolver() = default;

  virtual ClusterSpec cluster_spec() const = 0;
  /// "" where the resolver was told nothing else.
  virtual std::string environment() const { return ""; }

  /// What the constructor or a setter was given, else what was found.
  std::optional<std::string> task_type() const { return own_task_type(); }
  std::optional<int> task_id() const { return own_task_id(); }
  std::optional<std::string> rpc_layer() const { return own_rpc_layer(); }
  void set_task_type(std::string task_type) { own_.task_type = std::move(task_type); }
  void set_task_id(int task_id) { own_.task_id = task_id; }
  void set_rpc_layer(std::string rpc_layer) { own_.rpc_layer = std::move(rpc_layer); }

  /// The address of a task, this process's own by default, as "host:port" or "rpc_layer://host:port". Each
  /// resolver says what else it may be. Throws Error(invalid_argument) for a task that is not in the cluster.
  std::string master(const std::optional<std::string>& task_type = {}, std::optional<int> task_id = {},
                     const std::optional<std::string>& rpc_layer = {}) const;

  /// How many accelerators the task has, by their kind: {{"GPU", 2}}. Throws Error(failed_precondition) where
  /// only the task itself knows.
  std::map<std::string, int> num_accelerators(const std::optional<std::string>& task_type = {},
                                              std::optional<int> task_id = {}) const;

 protected:
  explicit ClusterResolver(TaskOptions own = {}) : own_(std::move(own)) {}
  ClusterResolver(const ClusterResolver&) = default;
  ClusterResolver& operator=(const ClusterResolver&) = default;

  virtual std::optional<std::string> own_task_type() const { return own_.task_type; }
  virtual std::optional<int> own_task_id() const { return own_.task_id; }
  virtual std::optional<std::string> own_rpc_layer() const { return own_.rpc_layer; }
  /// `asked`: the arguments of the public function. Here: the task that was asked for, part by part, or own.
  virtual std::string find_master(const TaskOptions& asked) const;
  virtual std::map<std::string, int> count_accelerators(const TaskOptions& asked) const = 0;

  /// Of the task in cluster_spec(). Throws Error(invalid_argument) where there is none.
  std::string address_of(const TaskOptions& task) const;
  /// Devices that `list` names for the task asked for, or own; all that it names where neither is known.
  /// Without a `list`, `visible` GPUs of own; throws Error(failed_precondition) for another task.
  std::map<std::string, int> count_devices(const ListDevices& list, int visible,
                                           const TaskOptions& asked) const;
  void set_own(TaskOptions own) { own_ = std::move(own); }
  /// `asked` where it has something, else own.
  TaskOptions or_own(const TaskOptions& asked) const;

 private:
  TaskOptions own_;
};

struct SimpleOptions {
  std::string master = {};  ///< what master() returns when it is not asked for a task
  std::optional<std::string> task_type = {};
  std::optional<int> task_id = {};
  std::string environment = {};
  std::map<std::string, int> num_accelerators = {};
  std::optional<std::string> rpc_layer = {};
};

/// What the program says.
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

/// Several clusters as one: the tasks of a job that several have stand one behind the other, in the order of
/// the resolvers. Everything else, where neither the constructor nor a setter says it, is the first one's:
/// master() too, when it is not asked for a task.
class CAPSTAN_API UnionClusterResolver final : public ClusterResolver {
 public:
  /// Throws Error(invalid_argument) without a resolver, and for a null one.
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
  std::optional<std::string> task_type = {};  ///< this and the next two beat TF_CONFIG
  std::optional<int> task_id = {};
  std::optional<std::string> rpc_layer = {};
  std::string environment = {};
  ListDevices list_devices = {};
  Environment process = Environment::of_process();
};

/// The variable TF_CONFIG:
///   {"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", "h2:2222"], "ps": ["h3:2222"]},
///    "task": {"type": "worker", "index": 0}, "rpc_layer": "grpc", "session_master": "h0:2222"}
/// All parts are optional; without the variable, or with an empty one, the cluster is empty.
/// master() is session_master where that is given, and "" where the cluster has no task or one.
class CAPSTAN_API TFConfigClusterResolver final : public ClusterResolver {
 public:
  /// Throws Error(invalid_argument) that names the place in TF_CONFIG and what was expected there.
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

/// The one to use when the program names none: TF_CONFIG's where that is set and not empty, else null.
CAPSTAN_API std::unique_ptr<ClusterResolver> default_cluster_resolver(
    const Environment& process = Environment::of_process());

/// So many tasks on a host.
struct HostTasks {
  std::string host;
  int tasks = 0;
  friend bool operator==(const HostTasks&, const HostTasks&) = default;
};

struct SlurmOptions {
  std::map<std::string, int> jobs = {};  ///< tasks by job; empty: all are workers
  int port_base = 8888;
  std::optional<int> gpus_per_node = {};   ///< else SLURM_GPUS_ON_NODE, SLURM_STEP_GPUS, CUDA_VISIBLE_DEVICES
  std::optional<int> gpus_per_task = {};   ///< else gpus_per_node / the most tasks of a node
  std::optional<int> tasks_per_node = {};  ///< on each host, in place of SLURM_STEP_TASKS_PER_NODE
  std::vector<HostTasks> hosts = {};       ///< in the order of ranks, in place of both lists
  std::optional<int> rank = {};            ///< in place of SLURM_PROCID
  std::string rpc_layer = "grpc";
  Environment process = Environment::of_process();
};

/// The step of Slurm that this process is in: SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE and
/// SLURM_PROCID; in a batch script, the job: SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE. Of a heterogeneous
/// job all components of the step, in their order (SLURM_HET_SIZE and SLURM_JOB_NODELIST_HET_GROUP_n).
///
/// Jobs are sorted by name and take the ranks one after the other: {{"ps", 1}, {"worker", 2}} makes rank 0
/// the ps. A task's port is port_base plus its number on its host. Ranks lie on hosts as SLURM_DISTRIBUTION
/// says.
class CAPSTAN_API SlurmClusterResolver final : public ClusterResolver {
 public:
  /// Throws Error: failed_precondition outside of Slurm, under an mpirun within it, and where what Slurm has
  /// assigned is not what was asked for; invalid_argument for a list or number that is none.
  explicit SlurmClusterResolver(SlurmOptions options = {});

  ClusterSpec cluster_spec() const override { return spec_; }
  int gpus_per_node() const noexcept { return gpus_per_node_; }
  int gpus_per_task() const noexcept { return gpus_per_task_; }

  /// This task's GPUs, in the form of CUDA_VISIBLE_DEVICES: gpus_per_task() of those that the process sees
  /// now, by its number on the host, or all where Slurm has bound the task to so many. Throws
  /// Error(failed_precondition) where it sees too few.
  std::string visible_gpus() const;
  /// Sets CUDA_VISIBLE_DEVICES of this process to that. Before CUDA is used and before threads are started.
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

/// The ranks of a cluster that this process has joined, whatever started them: the coordinator is the chief.
/// Addresses are host names without ports, of which the ranks need none; tasks of one host have the same. A
/// ps is where it is now. Workers that came late stand in it too, with "" for one of which this rank has not
/// heard. Spare ranks have no task until they take the place of a ps.
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

/// validate_cluster of the resolver's spec and task (cluster_spec.hpp).
CAPSTAN_API void validate_cluster(const ClusterResolver& resolver);

}  // namespace capstan
