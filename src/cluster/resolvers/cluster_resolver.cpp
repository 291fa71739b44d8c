// cluster_resolver.cpp -- base class of the resolvers, and the simple, union and MPI resolvers.
#include "capstan/resolvers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "capstan/error.hpp"
#include "cluster/runtime.hpp"

namespace capstan {
namespace {

constexpr std::string_view kVisibleDevices = "CUDA_VISIBLE_DEVICES";

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Lists /dev/nvidia0, /dev/nvidia1, ...
int count_device_files() {
  constexpr std::string_view kName = "nvidia";
  std::error_code ignored;  // a host without a readable /dev has no usable GPU
  int count = 0;
  for (std::filesystem::directory_iterator entry("/dev", ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kName) && all_digits(name.substr(kName.size()))) ++count;
  }
  return count;
}

bool names_device(const std::string& entry) {
  return all_digits(entry) || entry.starts_with("GPU-") || entry.starts_with("MIG-");
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string with_layer(const std::string& address, const std::optional<std::string>& rpc_layer) {
  return rpc_layer.value_or("").empty() ? address : *rpc_layer + "://" + address;
}

/// Returns the kind of a device, such as "GPU" for "/job:worker/task:1/device:GPU:0"; "" if it is a CPU or
/// belongs to another task.
std::string accelerator_of(const std::string& device, const TaskOptions& task) {
  std::string kind;
  for (const std::string& part : split(device, '/')) {
    const std::vector<std::string> words = split(part, ':');
    if (words[0] == "job" && task.task_type && task.task_id && words.back() != *task.task_type) return "";
    if (words[0] == "task" && task.task_type && task.task_id &&
        words.back() != std::to_string(*task.task_id)) {
      return "";
    }
    if (words[0] == "device" && words.size() > 1) kind = words[1];
  }
  return kind == "CPU" ? "" : kind;
}

}  // namespace

Environment Environment::of_process() {
  return {[](const std::string& name) -> std::optional<std::string> {
            const char* const value = std::getenv(name.c_str());
            return value == nullptr ? std::nullopt : std::optional<std::string>(value);
          },
          count_device_files};
}

Environment Environment::of(std::map<std::string, std::string> variables, int gpus) {
  return {[variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
            const auto found = variables.find(name);
            return found == variables.end() ? std::nullopt : std::optional(found->second);
          },
          [gpus] { return gpus; }};
}

// CUDA uses the entries before the first invalid one, such as -1.
std::optional<std::vector<std::string>> Environment::visible_devices() const {
  const std::optional<std::string> value = variable(std::string(kVisibleDevices));
  if (!value) return std::nullopt;
  std::vector<std::string> devices = split(*value, ',');
  devices.erase(std::find_if_not(devices.begin(), devices.end(), names_device), devices.end());
  return devices;
}

int Environment::visible_gpus() const {
  const auto devices = visible_devices();
  return devices ? static_cast<int>(devices->size()) : gpus();
}

std::string ClusterResolver::master(const std::optional<std::string>& task_type, std::optional<int> task_id,
                                    const std::optional<std::string>& rpc_layer) const {
  return find_master({task_type, task_id, rpc_layer});
}

std::map<std::string, int> ClusterResolver::num_accelerators(const std::optional<std::string>& task_type,
                                                             std::optional<int> task_id) const {
  return count_accelerators({task_type, task_id, {}});
}

TaskOptions ClusterResolver::or_own(const TaskOptions& asked) const {
  return {asked.task_type ? asked.task_type : task_type(), asked.task_id ? asked.task_id : task_id(),
          asked.rpc_layer ? asked.rpc_layer : rpc_layer()};
}

std::string ClusterResolver::address_of(const TaskOptions& task) const {
  if (!task.task_type || !task.task_id) {
    throw Error(
        Code::invalid_argument,
        fmt::format("the resolver does not know its {}: give it to the constructor, a setter or master()",
                    task.task_type ? "task_id" : "task_type"));
  }
  return with_layer(cluster_spec().task_address(*task.task_type, *task.task_id), task.rpc_layer);
}

std::string ClusterResolver::find_master(const TaskOptions& asked) const { return address_of(or_own(asked)); }

std::map<std::string, int> ClusterResolver::count_devices(const ListDevices& list, int visible,
                                                          const TaskOptions& asked) const {
  const TaskOptions task = or_own(asked);
  std::map<std::string, int> counts;
  if (list) {
    for (const std::string& device : list(find_master(asked))) {
      const std::string kind = accelerator_of(device, task);
      if (!kind.empty()) ++counts[kind];
    }
    return counts;
  }
  if (task.task_type != task_type() || task.task_id != task_id()) {
    throw Error(Code::failed_precondition,
                fmt::format("only {} {} itself knows its accelerators: call num_accelerators there, or set "
                            "list_devices",
                            task.task_type.value_or("task"), task.task_id.value_or(0)));
  }
  if (visible > 0) counts["GPU"] = visible;
  return counts;
}

void validate_cluster(const ClusterResolver& resolver) {
  validate_cluster(resolver.cluster_spec(), resolver.task_type(), resolver.task_id());
}

SimpleClusterResolver::SimpleClusterResolver(ClusterSpec spec, SimpleOptions options)
    : ClusterResolver({options.task_type, options.task_id, options.rpc_layer}),
      spec_(std::move(spec)),
      options_(std::move(options)) {}

std::string SimpleClusterResolver::find_master(const TaskOptions& asked) const {
  const TaskOptions task{asked.task_type, asked.task_id, or_own(asked).rpc_layer};
  if (task.task_type && task.task_id) return address_of(task);
  return options_.master.empty() ? "" : with_layer(options_.master, task.rpc_layer);
}

std::map<std::string, int> SimpleClusterResolver::count_accelerators(const TaskOptions&) const {
  return options_.num_accelerators;
}

UnionClusterResolver::UnionClusterResolver(std::vector<std::shared_ptr<const ClusterResolver>> resolvers,
                                           TaskOptions own)
    : ClusterResolver(std::move(own)), resolvers_(std::move(resolvers)) {
  if (resolvers_.empty()) throw Error(Code::invalid_argument, "At least one ClusterResolver is required.");
  for (std::size_t i = 0; i < resolvers_.size(); ++i) {
    if (!resolvers_[i]) {
      throw Error(Code::invalid_argument, fmt::format("UnionClusterResolver: resolver {} is null", i));
    }
  }
}

ClusterSpec UnionClusterResolver::cluster_spec() const {
  ClusterSpec whole;
  for (const auto& resolver : resolvers_) {
    for (const auto& [job, addresses] : resolver->cluster_spec().jobs) {
      std::vector<std::string>& all = whole.jobs[job];
      all.insert(all.end(), addresses.begin(), addresses.end());
    }
  }
  return whole;
}

std::optional<std::string> UnionClusterResolver::own_task_type() const {
  auto own = ClusterResolver::own_task_type();
  return own ? own : resolvers_[0]->task_type();
}

std::optional<int> UnionClusterResolver::own_task_id() const {
  const auto own = ClusterResolver::own_task_id();
  return own ? own : resolvers_[0]->task_id();
}

std::optional<std::string> UnionClusterResolver::own_rpc_layer() const {
  auto own = ClusterResolver::own_rpc_layer();
  return own ? own : resolvers_[0]->rpc_layer();
}

std::string UnionClusterResolver::find_master(const TaskOptions& asked) const {
  const TaskOptions task{asked.task_type, asked.task_id, or_own(asked).rpc_layer};
  return task.task_type && task.task_id ? address_of(task) : resolvers_[0]->master({}, {}, task.rpc_layer);
}

std::map<std::string, int> UnionClusterResolver::count_accelerators(const TaskOptions& asked) const {
  return resolvers_[0]->num_accelerators(asked.task_type, asked.task_id);
}

MpiClusterResolver::MpiClusterResolver(Cluster cluster, MpiOptions options)
    : ClusterResolver({{}, {}, std::move(options.rpc_layer)}),
      cluster_(std::move(cluster)),
      list_devices_(std::move(options.list_devices)),
      visible_gpus_(options.process.visible_gpus()) {}

ClusterSpec MpiClusterResolver::cluster_spec() const {
  const cluster::Runtime& runtime = *cluster_.runtime();
  ClusterSpec spec;
  for (const auto& [role, job] :
       {std::pair{Role::coordinator, "chief"}, {Role::evaluator, "evaluator"}, {Role::ps, "ps"}}) {
    for (int index = 0; index < runtime.count(role); ++index) {
      spec.jobs[job].push_back(runtime.member(role, index).host);
    }
  }
  std::vector<std::string>& workers = spec.jobs["worker"];
  for (const int rank : runtime.membership().worker_ranks()) {
    const cluster::Member& worker = runtime.member(rank);
    const auto at = static_cast<std::size_t>(worker.index);
    workers.resize(std::max(workers.size(), at + 1));
    workers[at] = worker.host;
  }
  return spec;
}

std::optional<std::string> MpiClusterResolver::own_task_type() const {
  if (auto set = ClusterResolver::own_task_type()) return set;
  if (cluster_.role() == Role::spare) return std::nullopt;
  return cluster_.role() == Role::coordinator ? "chief" : std::string(to_string(cluster_.role()));
}

std::optional<int> MpiClusterResolver::own_task_id() const {
  if (auto set = ClusterResolver::own_task_id()) return set;
  return cluster_.role() == Role::spare ? std::nullopt : std::optional(cluster_.index());
}

std::map<std::string, int> MpiClusterResolver::count_accelerators(const TaskOptions& asked) const {
  return count_devices(list_devices_, visible_gpus_, asked);
}

}  // namespace capstan
