// variable_registry.cpp -- a list of variables under a mutex.
#include "strategy/variable_registry.hpp"

#include <algorithm>
#include <utility>

#include "capstan/error.hpp"
#include "io/hdf5/layout.hpp"
#include "protocol/table_layout.hpp"

namespace capstan::strategy {

void VariableRegistry::require_new(const std::string& name) const {
  if (names_may_repeat_) return;
  if (names_.contains(name)) {
    throw Error(Code::already_exists, "variable \"" + name + "\" already exists; choose another name");
  }
  io::check_no_collision_with(names_, name);
}

void VariableRegistry::add(std::shared_ptr<const BoundVariable> variable) {
  const protocol::VariableDescriptor& d = variable->descriptor;
  names_.insert(d.name);
  for (std::size_t s = 0; d.table && s < d.shards.size(); ++s) names_.insert(io::table_part(d.name, s));
  const std::lock_guard lock(mutex_);
  variables_.push_back(std::move(variable));
}

std::vector<std::shared_ptr<const BoundVariable>> VariableRegistry::all(std::size_t known) const {
  const std::lock_guard lock(mutex_);
  return {variables_.begin() + static_cast<std::ptrdiff_t>(known), variables_.end()};
}

std::shared_ptr<const BoundVariable> VariableRegistry::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(variables_.rbegin(), variables_.rend(),
                                  [&](const auto& variable) { return variable->descriptor.name == name; });
  return found == variables_.rend() ? nullptr : *found;
}

std::vector<std::uint32_t> VariableRegistry::ids() const {
  std::vector<std::uint32_t> ids;
  const std::lock_guard lock(mutex_);
  for (const auto& variable : variables_) ids.push_back(variable->descriptor.id);
  return ids;
}

}  // namespace capstan::strategy
