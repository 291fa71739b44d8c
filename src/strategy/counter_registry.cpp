// counter_registry.cpp -- distributes counters over the ps round-robin.
#include "strategy/counter_registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/name.hpp"
#include "capstan/error.hpp"
#include "protocol/push_format.hpp"

namespace capstan::strategy {

CounterRegistry::CounterRegistry(cluster::Runtime& runtime, Context& context,
                                 CurrentRestorePoint& restore_point)
    : runtime_(runtime),
      context_(context),
      restore_point_(restore_point),
      names_by_number_(runtime.coordinator_memory().read().counters) {}

CounterRegistry::Slot CounterRegistry::create(const std::string& name) {
  check_name("counter", name);
  if (created_.contains(name)) {
    throw Error(Code::already_exists, "counter \"" + name + "\" already exists; choose another name");
  }
  const auto ps_count = static_cast<std::size_t>(runtime_.count(Role::ps));
  const std::size_t number = number_of(name);
  if (number / ps_count >= protocol::BoardLayout::kCounters) {
    throw Error(Code::resource_exhausted,
                fmt::format("cannot create counter \"{}\": {} ps have {} counters, which is the maximum",
                            name, ps_count, number));
  }
  created_.insert(name);
  if (number == names_by_number_.size()) {
    names_by_number_.push_back(name);
    runtime_.coordinator_memory().change([&](auto& record) { record.counters = names_by_number_; });
  }
  const Slot slot = slot_of(number);
  if (const auto value = restore_point_.counter(name)) {
    set(name, *value);
    restore_point_.note_counter_restored(name, {slot.ps, slot.index, static_cast<std::uint64_t>(*value)});
  }
  return slot;
}

/// Returns the number of this counter; for a new name, the next unused number.
std::size_t CounterRegistry::number_of(const std::string& name) const {
  const auto found = std::find(names_by_number_.begin(), names_by_number_.end(), name);
  return static_cast<std::size_t>(found - names_by_number_.begin());
}

CounterRegistry::Slot CounterRegistry::slot_of(std::size_t number) const {
  const auto ps_count = static_cast<std::size_t>(runtime_.count(Role::ps));
  return {static_cast<std::int32_t>(number % ps_count), static_cast<std::uint32_t>(number / ps_count)};
}

PsContents::Counters CounterRegistry::read() {
  PsContents::Counters values;
  const ClientUse client = context_.use_client();
  for (std::size_t number = 0; number < names_by_number_.size(); ++number) {
    const Slot slot = slot_of(number);
    values.push_back({slot.ps, slot.index, client->fetch_add(slot.ps, slot.index, 0)});
  }
  return values;
}

PsContents::Counters CounterRegistry::read_before(const std::function<void()>& transfer) {
  const ClientUse client = context_.use_client();
  client::PsConnections& connections = client->connections();
  while (true) {
    const std::uint64_t relocations = connections.relocations();
    auto values = read();
    connections.retry(transfer);
    if (connections.relocations() == relocations) return values;
  }
}

std::map<std::string, std::int64_t> CounterRegistry::by_name(const PsContents::Counters& values) const {
  std::map<std::string, std::int64_t> named;
  for (std::size_t number = 0; number < values.size(); ++number) {
    const std::string& name = names_by_number_[number];
    if (!created_.contains(name)) continue;  // so far created only by a previous process
    named.emplace(name, static_cast<std::int64_t>(values[number].value));
  }
  return named;
}

bool CounterRegistry::set(const std::string& name, std::int64_t value) {
  if (!created_.contains(name)) return false;
  const Slot slot = slot_of(number_of(name));
  const ClientUse client = context_.use_client();
  client->connections().retry([&] {
    const std::uint64_t now = client->fetch_add(slot.ps, slot.index, 0);
    (void)client->fetch_add(slot.ps, slot.index, static_cast<std::uint64_t>(value) - now);
  });
  return true;
}

}  // namespace capstan::strategy
