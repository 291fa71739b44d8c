// binding.cpp -- assigns devices and NUMA nodes to ranks round-robin.
#include "cluster/roles/binding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace capstan::cluster {
namespace {

using topology::AvailableResources;
using topology::Device;
using topology::NodeCpus;

const NodeCpus* find_node(const AvailableResources& resources, std::int32_t node) {
  const auto found = std::find_if(resources.nodes.begin(), resources.nodes.end(),
                                  [node](const NodeCpus& one) { return one.node == node; });
  return found == resources.nodes.end() ? nullptr : &*found;
}

/// Returns device number `turn`, cyclically: of the devices at NUMA nodes that the rank may use, or of all
/// devices if there is none at these nodes.
const Device* in_turn(const AvailableResources& resources, const std::vector<Device>& devices,
                      std::size_t turn) {
  std::vector<const Device*> near;
  for (const Device& device : devices) {
    if (find_node(resources, device.node) != nullptr) near.push_back(&device);
  }
  if (near.empty()) return devices.empty() ? nullptr : &devices[turn % devices.size()];
  return near[turn % near.size()];
}

void run_on(Binding& binding, const AvailableResources& resources, const NodeCpus* node) {
  if (node == nullptr) return;
  binding.node = node->node;
  binding.narrows = node->cpus != resources.cpus;
  binding.cpus = node->cpus;
}

/// Returns the CPUs in a list such as "0-3,8", as hwloc formats it.
std::set<int> numbers_of(const std::string& list) {
  std::set<int> numbers;
  int first = 0;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    at = std::from_chars(at, end, first).ptr;
    int last = first;
    if (at < end && *at == '-') at = std::from_chars(at + 1, end, last).ptr;
    for (int number = first; number <= last; ++number) numbers.insert(number);
    if (at < end && *at++ != ',') break;
  }
  return numbers;
}

bool is_busy(Role role) { return one_fabric(role) || role == Role::worker; }

/// Returns a warning if the two threads of a busy rank must share one core.
std::optional<std::string> on_one_core(const Member& member) {
  if (!is_busy(member.role) || member.resources.core_count != 1) return std::nullopt;
  const bool ps = one_fabric(member.role);
  return fmt::format(
      "{} is bound to one core (cpus {}), which {} share: mpirun --bind-to none, or --map-by slot:PE=2, or "
      "srun "
      "--cpus-per-task=2",
      member.name(), member.resources.cpus,
      ps ? "the thread that applies pushes and the one that writes checkpoints"
         : "the thread that computes and the one that talks to the coordinator");
}

}  // namespace

std::vector<Binding> plan_binding(const std::vector<Member>& members) {
  std::vector<Binding> bindings;
  std::map<std::pair<std::string, bool>, std::size_t> turns;  // by host and by whether the rank is a ps
  for (const Member& member : members) {
    const AvailableResources& resources = member.resources;
    Binding binding{.cpus = resources.cpus,
                    .node = resources.nodes.size() == 1 ? resources.nodes[0].node : -1};
    const bool ps = one_fabric(member.role);
    const std::size_t turn = is_busy(member.role) ? turns[{member.host, ps}]++ : 0;
    const Device* adapter = in_turn(resources, resources.adapters, turn);
    if (ps && !resources.nodes.empty()) {
      const NodeCpus* node = adapter != nullptr ? find_node(resources, adapter->node) : nullptr;
      run_on(binding, resources, node != nullptr ? node : &resources.nodes[turn % resources.nodes.size()]);
    }
    if (member.role == Role::worker) {
      if (const Device* gpu = in_turn(resources, resources.gpus, turn)) {
        binding.gpu = gpu->name;
        run_on(binding, resources, find_node(resources, gpu->node));
      }
    }
    if (adapter != nullptr && is_busy(member.role)) binding.adapter = adapter->name;
    bindings.push_back(std::move(binding));
  }
  return bindings;
}

std::string job_summary(const std::vector<Member>& members) {
  std::set<std::string> hosts;
  std::map<Role, int> counts;
  for (const Member& member : members) {
    hosts.insert(member.host);
    ++counts[member.role];
  }
  std::string text = "1 coordinator";
  for (const auto& [role, name] :
       {std::pair(Role::ps, "ps"), std::pair(Role::worker, "worker"), std::pair(Role::evaluator, "evaluator"),
        std::pair(Role::spare, "spare")}) {
    const int count = counts[role];
    if (count > 0) text += fmt::format(", {} {}{}", count, name, count == 1 || role == Role::ps ? "" : "s");
  }
  return fmt::format("{} on {} host{}", text, hosts.size(), hosts.size() == 1 ? "" : "s");
}

std::vector<std::string> binding_table(const std::vector<Member>& members,
                                       const std::vector<Binding>& bindings, std::size_t most) {
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (lines.size() == most) {
      lines.push_back(fmt::format("and {} more", members.size() - most));
      break;
    }
    const Binding& binding = bindings[rank];
    std::string line =
        fmt::format("{} is process {}: {}", members[rank].name(), members[rank].pid,
                    binding.cpus.empty() ? "hwloc does not report its cpus" : "cpus " + binding.cpus);
    if (binding.node >= 0) line += fmt::format(", NUMA node {}", binding.node);
    for (const std::string& device : {binding.adapter, binding.gpu}) {
      if (!device.empty()) line += ", " + device;
    }
    if (binding.narrows) line += ", bound";
    if (const auto& network = members[rank].resources.network; !network.empty()) {
      line += fmt::format(", UCX by {}", fmt::join(network, " "));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> binding_warnings(const std::vector<Member>& members,
                                          const std::vector<Binding>& bindings) {
  std::vector<std::string> warnings;
  struct Host {
    int ps = 0, workers = 0;
    std::set<int> cpus;
    std::map<std::string, const Member*> alone;  // by core: a busy rank that is bound to this core
  };
  std::map<std::string, Host> hosts;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const Member& member = members[rank];
    Host& host = hosts[member.host];
    host.cpus.merge(numbers_of(member.resources.cpus));
    if (!is_busy(member.role)) continue;
    ++(one_fabric(member.role) ? host.ps : host.workers);
    auto one = on_one_core(member);
    if (!one) continue;
    const auto [other, is_first] = host.alone.emplace(bindings[rank].cpus, &member);
    if (!is_first) {
      one = fmt::format(
          "{} and {} are bound to the same core (cpus {}): mpirun --bind-to none, or fewer ranks per host",
          other->second->name(), member.name(), bindings[rank].cpus);
    }
    warnings.push_back(*one);
  }
  // Workers on the host of a ps access its memory directly, so the ps of a job on one host are mostly idle.
  // In a job on several hosts, the ps also serve messages from other hosts.
  const auto used =
      std::ranges::count_if(hosts, [](const auto& one) { return one.second.ps + one.second.workers > 0; });
  for (const auto& [name, host] : hosts) {
    const int busy = used == 1 ? std::max(host.ps, host.workers) : host.ps + host.workers;
    if (host.cpus.size() > 1 && busy > static_cast<int>(host.cpus.size())) {
      warnings.push_back(
          fmt::format("{} has {} ps and {} worker{}, which share {} cpus: start fewer ranks on this host",
                      name, host.ps, host.workers, host.workers == 1 ? "" : "s", host.cpus.size()));
    }
  }
  return warnings;
}

}  // namespace capstan::cluster
