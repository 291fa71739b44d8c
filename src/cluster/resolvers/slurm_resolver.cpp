// slurm_resolver.cpp -- SlurmClusterResolver: jobs, ports and GPUs for a layout of ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "capstan/error.hpp"
#include "capstan/resolvers.hpp"
#include "cluster/resolvers/slurm_layout.hpp"
#include "cluster/resolvers/slurm_lists.hpp"

namespace capstan {
namespace {

using cluster::SlurmLayout;
using Jobs = std::map<std::string, int>;

constexpr int kLastPort = 65'535;

/// Returns the requested jobs; by default all tasks that Slurm started are workers.
Jobs jobs_of(const SlurmOptions& options, const SlurmLayout& layout) {
  for (const auto& [job, tasks] : options.jobs) {
    if (tasks < 0) {
      throw Error(Code::invalid_argument,
                  fmt::format("SlurmOptions::jobs: {} has {} tasks; expected 0 or more", job, tasks));
    }
  }
  if (!options.jobs.empty()) return options.jobs;
  return {{"worker", layout.started.value_or(static_cast<int>(layout.tasks.size()))}};
}

void check_sum(const Jobs& jobs, const SlurmLayout& layout) {
  const auto sum = std::accumulate(jobs.begin(), jobs.end(), std::int64_t{0},
                                   [](std::int64_t all, const auto& job) { return all + job.second; });
  if (sum == static_cast<std::int64_t>(layout.tasks.size())) return;
  std::vector<std::string> parts;
  for (const auto& [job, tasks] : jobs) parts.push_back(fmt::format("{} {}", job, tasks));
  throw Error(
      Code::failed_precondition,
      fmt::format("Requested {} tasks ({}) but {} were assigned ({}): start with srun --ntasks={}, or give "
                  "SlurmOptions other jobs",
                  sum, fmt::join(parts, ", "), layout.tasks.size(), layout.source, sum));
}

void check_ports(int port_base, int most_tasks) {
  if (port_base >= 1 && port_base <= kLastPort - most_tasks + 1) return;
  throw Error(Code::invalid_argument, fmt::format("port_base is {}; expected 1 to {}, as a host has {} tasks",
                                                  port_base, kLastPort - most_tasks + 1, most_tasks));
}

int find_gpus_per_node(const SlurmOptions& options) {
  if (options.gpus_per_node) return *options.gpus_per_node;
  if (const auto count = cluster::find_variable(options.process, {"SLURM_GPUS_ON_NODE"})) {
    return cluster::number_in(*count);
  }
  if (const auto list = cluster::find_variable(options.process, {"SLURM_STEP_GPUS"})) {
    return cluster::count_numbers(list->name, list->value);
  }
  return options.process.visible_gpus();
}

void check_gpus(int per_node, int per_task, int most_tasks) {
  if (per_node < 0 || per_task < 0) {
    throw Error(
        Code::invalid_argument,
        fmt::format("gpus_per_node is {} and gpus_per_task is {}; expected 0 or more", per_node, per_task));
  }
  if (std::int64_t{most_tasks} * per_task > per_node) {
    throw Error(
        Code::failed_precondition,
        fmt::format("Requested more GPUs per node than available: {} tasks with {} GPUs each on a node with "
                    "{}; ask Slurm for more with --gpus-per-node, or lower gpus_per_task",
                    most_tasks, per_task, per_node));
  }
}

}  // namespace

SlurmClusterResolver::SlurmClusterResolver(SlurmOptions options) {
  const SlurmLayout layout = cluster::find_slurm_layout(options);
  const int most_tasks = layout.max_tasks_per_host;
  const Jobs jobs = jobs_of(options, layout);
  check_sum(jobs, layout);
  check_ports(options.port_base, most_tasks);

  gpus_per_node_ = find_gpus_per_node(options);
  gpus_per_task_ = options.gpus_per_task.value_or(gpus_per_node_ / most_tasks);
  check_gpus(gpus_per_node_, gpus_per_task_, most_tasks);
  devices_ = options.process.visible_devices();
  local_id_ = layout.tasks[static_cast<std::size_t>(layout.rank)].local;

  TaskOptions own{{}, {}, options.rpc_layer};
  int rank = 0;
  for (const auto& [job, tasks] : jobs) {
    std::vector<std::string>& addresses = spec_.jobs[job];
    for (int id = 0; id < tasks; ++id, ++rank) {
      const cluster::SlurmTask& task = layout.tasks[static_cast<std::size_t>(rank)];
      addresses.push_back(fmt::format("{}:{}", task.host, options.port_base + task.local));
      if (rank != layout.rank) continue;
      own.task_type = job;
      own.task_id = id;
    }
  }
  set_own(std::move(own));
}

std::map<std::string, int> SlurmClusterResolver::count_accelerators(const TaskOptions&) const {
  return {{"GPU", gpus_per_task_}};
}

std::string SlurmClusterResolver::visible_gpus() const {
  const int first = local_id_ * gpus_per_task_;
  std::vector<std::string> own;
  if (!devices_) {
    for (int gpu = first; gpu < first + gpus_per_task_; ++gpu) own.push_back(std::to_string(gpu));
  } else if (static_cast<int>(devices_->size()) == gpus_per_task_) {
    own = *devices_;
  } else if (static_cast<int>(devices_->size()) >= first + gpus_per_task_) {
    own.assign(devices_->begin() + first, devices_->begin() + first + gpus_per_task_);
  } else {
    throw Error(
        Code::failed_precondition,
        fmt::format(
            "task {} of this host takes GPUs {} to {} of its {}, but CUDA_VISIBLE_DEVICES has {}: {}; "
            "start with srun --gpus-per-task={} or --gpu-bind=none",
            local_id_, first, first + gpus_per_task_ - 1, gpus_per_node_, devices_->size(),
            fmt::join(*devices_, ","), gpus_per_task_));
  }
  return fmt::format("{}", fmt::join(own, ","));
}

void SlurmClusterResolver::set_visible_gpus() const {
  if (setenv("CUDA_VISIBLE_DEVICES", visible_gpus().c_str(), 1) != 0) {
    throw call_failed("setenv", std::strerror(errno));
  }
}

}  // namespace capstan
