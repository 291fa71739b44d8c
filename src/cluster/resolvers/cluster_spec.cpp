// cluster_spec.cpp -- TensorFlow's rules for chiefs, workers and devices.
#include "capstan/resolvers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "capstan/error.hpp"

namespace capstan {
namespace {

constexpr std::array<std::string_view, 4> kJobs{"chief", "worker", "evaluator", "ps"};

bool is_job(std::string_view name) { return std::find(kJobs.begin(), kJobs.end(), name) != kJobs.end(); }

Error invalid(const std::string& message) { return Error(Code::invalid_argument, message); }

void check_task_id(const ClusterSpec& spec, const std::string& task_type, std::optional<int> task_id) {
  if (!task_id) throw invalid(fmt::format("The `task_id` of {} is missing", task_type));
  if (*task_id < 0) throw invalid(fmt::format("The `task_id` {} of {} is negative", *task_id, task_type));
  if (spec.jobs.contains(task_type) && *task_id >= spec.task_count(task_type)) {
    throw invalid(fmt::format("The `task_id` {} exceeds the maximum id of {}, {}", *task_id, task_type,
                              spec.task_count(task_type) - 1));
  }
}

void check(const ClusterSpec& spec, const std::optional<std::string>& task_type, std::optional<int> task_id) {
  const std::string allowed = fmt::format("{}", fmt::join(kJobs, ", "));
  for (const auto& [job, addresses] : spec.jobs) {
    if (!is_job(job)) {
      throw invalid(
          fmt::format("Disallowed task type found in cluster spec: \"{}\"; allowed are {}", job, allowed));
    }
  }
  if (task_type && !is_job(*task_type)) {
    throw invalid(fmt::format("Unrecognized task_type: {}; valid are {}", *task_type, allowed));
  }
  if (task_type && !spec.jobs.contains(*task_type) && task_type != "evaluator") {
    throw invalid(fmt::format("`task_type` '{}' not found in cluster_spec", *task_type));
  }
  for (const char* const job : {"chief", "evaluator"}) {
    if (spec.task_count(job) > 1) {
      throw invalid(
          fmt::format("There must be at most one '{}' job. The spec has {}", job, spec.task_count(job)));
    }
  }
  if (task_type) check_task_id(spec, *task_type, task_id);
}

}  // namespace

int ClusterSpec::task_count(const std::string& job) const {
  const auto found = jobs.find(job);
  return found == jobs.end() ? 0 : static_cast<int>(found->second.size());
}

const std::string& ClusterSpec::task_address(const std::string& job, int task_id) const {
  const auto found = jobs.find(job);
  if (found == jobs.end()) {
    std::vector<std::string> names;
    for (const auto& [name, addresses] : jobs) names.push_back(name);
    throw invalid(fmt::format("No such job in cluster: '{}'; there {} {}", job,
                              names.size() == 1 ? "is" : "are",
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  if (task_id < 0 || task_id >= task_count(job)) {
    throw invalid(
        fmt::format("No task with index {} in job '{}', which has {}", task_id, job, task_count(job)));
  }
  return found->second[static_cast<std::size_t>(task_id)];
}

void validate_cluster(const ClusterSpec& spec, const std::optional<std::string>& task_type,
                      std::optional<int> task_id) {
  if (spec.empty()) {
    throw invalid(
        "Cluster spec must be non-empty in the ClusterResolver: it needs a ps and a worker at least; is "
        "TF_CONFIG set?");
  }
  check(spec, task_type, task_id);
  for (const char* const job : {"ps", "worker"}) {
    if (spec.task_count(job) < 1) throw invalid(fmt::format("There must be at least one {}.", job));
  }
}

bool is_chief(const ClusterSpec& spec, const std::string& task_type, int task_id) {
  check(spec, task_type, task_id);
  if (task_type == "worker") return !spec.jobs.contains("chief") && task_id == 0;
  return task_type == "chief" || task_type == "evaluator";
}

int worker_count(const ClusterSpec& spec, const std::string& task_type) {
  check(spec, task_type, 0);
  if (task_type == "ps") throw invalid("Unexpected `task_type` 'ps': a ps is no worker");
  if (task_type == "evaluator") return 1;
  return spec.task_count("chief") + spec.task_count("worker");
}

int id_in_cluster(const ClusterSpec& spec, const std::string& task_type, int task_id) {
  check(spec, task_type, task_id);
  if (task_type == "ps") throw invalid("There is no id for task_type 'ps'");
  return task_type == "worker" ? task_id + spec.task_count("chief") : task_id;
}

DevicePlan plan_devices(const ClusterSpec& spec, const std::optional<std::string>& task_type,
                        std::optional<int> task_id, int gpus_per_worker) {
  if (gpus_per_worker < 0) {
    throw invalid(fmt::format("gpus_per_worker is {}; expected 0 or more", gpus_per_worker));
  }
  DevicePlan plan;
  if (!spec.empty()) {
    if (!task_type || !task_id) {
      throw invalid("When `cluster_spec` is given, you must also specify `task_type` and `task_id`");
    }
    plan.chief = is_chief(spec, *task_type, *task_id);
    if (spec.task_count("ps") == 0) throw invalid("The cluster spec needs to have `ps` jobs.");
    plan.worker = fmt::format("/job:{}/task:{}", *task_type, *task_id);
    for (int ps = 0; ps < spec.task_count("ps"); ++ps)
      plan.variable.push_back(fmt::format("/job:ps/task:{}", ps));
  }
  for (int gpu = 0; gpu < gpus_per_worker; ++gpu) {
    plan.compute.push_back(fmt::format("{}/device:GPU:{}", plan.worker, gpu));
  }
  if (plan.compute.empty()) plan.compute.push_back(plan.worker + "/device:CPU:0");
  if (spec.empty()) plan.variable.push_back(gpus_per_worker == 1 ? plan.compute[0] : "/device:CPU:0");
  return plan;
}

}  // namespace capstan
