// gpu_assignment.cpp -- assigns the GPUs of a host to its ranks round-robin.
#include "cluster/roles/gpu_assignment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "capstan/error.hpp"
#include "gpu/gpu.hpp"

namespace capstan::cluster {
namespace {

/// Position among the members of its role on its host.
int turn_of(const Runtime& runtime) {
  const Member& self = runtime.self();
  const auto& members = runtime.table().members;
  return static_cast<int>(std::count_if(members.begin(), members.end(), [&](const Member& member) {
    return member.role == self.role && member.host == self.host && member.index < self.index;
  }));
}

}  // namespace

std::vector<int> round_robin_gpus(int turn, int wanted, int there) {
  if (wanted > there) {
    throw Error(Code::failed_precondition,
                fmt::format("expected {} GPUs, found {}; request more from the launcher, or use fewer",
                            wanted, there));
  }
  std::vector<int> own;
  for (int i = 0; i < wanted; ++i) own.push_back((turn * wanted + i) % there);
  return own;
}

std::vector<int> assigned_gpus(const Runtime& runtime, int wanted) {
  const std::string name = runtime.self().name();
  if (gpu::count() == 0) throw Error(Code::failed_precondition, name + ": " + gpu::why_none());
  try {
    return round_robin_gpus(turn_of(runtime), wanted, gpu::count());
  } catch (const Error& error) {
    throw Error(error.code(), name + ": " + error.what());
  }
}

void choose_gpus(const Settings& settings) {
  const auto wanted = static_cast<int>(settings.integer("gpu-stand-ins"));
  const bool are_there = gpu::are_stand_ins() && gpu::count() == wanted;
  if (wanted > 0 && !are_there) gpu::use_stand_ins(wanted);
}

}  // namespace capstan::cluster
