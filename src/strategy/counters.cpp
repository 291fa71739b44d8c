// counters.cpp -- where a strategy's counters lie, and their values all at once.
#include <fmt/format.h>

#include <algorithm>

#include "base/name.hpp"
#include "strategy/strategy.hpp"

namespace capstan::strategy {

std::pair<std::int32_t, std::uint32_t> Strategy::create_counter(const std::string& name) {
  check_name("counter", name);
  if (created_counters_.contains(name)) {
    throw Error(Code::already_exists, "there is a counter \"" + name + "\" already");
  }
  const auto ps_count = static_cast<std::size_t>(runtime_->count(Role::ps));
  const auto number =
      static_cast<std::size_t>(std::find(counters_.begin(), counters_.end(), name) - counters_.begin());
  if (number / ps_count >= protocol::BoardLayout::kCounters) {
    throw Error(Code::resource_exhausted,
                fmt::format("{} counters are all that {} ps have room for", number, ps_count));
  }
  created_counters_.insert(name);
  if (number == counters_.size()) {
    counters_.push_back(name);
    runtime_->coordinator_memory().change([&](auto& record) { record.counters = counters_; });
  }
  if (const auto value = restore_point_ ? restore_point_->counter(name) : std::nullopt) {
    set_counter(name, *value);
    restore_point_->took_counter(name);
    const auto [ps, index] = place_of_counter(number);
    contents_.extend_checkpoint(PsContents::Counter{ps, index, static_cast<std::uint64_t>(*value)});
  }
  return place_of_counter(number);
}

std::pair<std::int32_t, std::uint32_t> Strategy::place_of_counter(std::size_t number) const {
  const auto ps_count = static_cast<std::size_t>(runtime_->count(Role::ps));
  return {static_cast<std::int32_t>(number % ps_count), static_cast<std::uint32_t>(number / ps_count)};
}

PsContents::Counters Strategy::read_counters() {
  PsContents::Counters counters;
  for (std::size_t number = 0; number < counters_.size(); ++number) {
    const auto [ps, index] = place_of_counter(number);
    counters.push_back({ps, index, context_.client().fetch_add(ps, index, 0)});
  }
  return counters;
}

std::map<std::string, std::int64_t> Strategy::by_name(const PsContents::Counters& counters) const {
  std::map<std::string, std::int64_t> values;
  for (std::size_t number = 0; number < counters.size(); ++number) {
    if (!created_counters_.contains(counters_[number]))
      continue;  // of an earlier process, not made by this one
    values.emplace(counters_[number], static_cast<std::int64_t>(counters[number].value));
  }
  return values;
}

bool Strategy::set_counter(const std::string& name, std::int64_t value) {
  if (!created_counters_.contains(name)) return false;
  const auto number = std::find(counters_.begin(), counters_.end(), name) - counters_.begin();
  const auto [ps, index] = place_of_counter(static_cast<std::size_t>(number));
  context_.client().connections().retry([&, ps = ps, index = index] {
    const std::uint64_t now = context_.client().fetch_add(ps, index, 0);
    (void)context_.client().fetch_add(ps, index, static_cast<std::uint64_t>(value) - now);
  });
  return true;
}

}  // namespace capstan::strategy
