// cluster_spec.hpp -- a cluster in TensorFlow's words: jobs, their tasks' addresses, and who is who among
// them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/export.hpp"

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

}  // namespace capstan
