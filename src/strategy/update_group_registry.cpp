// update_group_registry.cpp -- checks a group's options, then asks every ps.
#include "strategy/update_group_registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>

#include "base/name.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "strategy/ps_calls.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::strategy {
namespace {

protocol::CreateGroup group_request(const std::string& name, const Synchronization& synchronization,
                                    int workers) {
  protocol::CreateGroup request;
  if (const auto* stale = std::get_if<StaleSynchronous>(&synchronization)) {
    request.mode = protocol::GroupMode::stale_synchronous;
    request.bound = stale->bound;
    if (stale->bound < 0) {
      throw Error(Code::invalid_argument,
                  fmt::format("update group \"{}\" has a staleness bound of {}; expected 0 or more", name,
                              stale->bound));
    }
  } else if (const auto* synchronous = std::get_if<Synchronous>(&synchronization)) {
    request.mode = protocol::GroupMode::synchronous;
    request.average = synchronous->average;
    request.backup_workers = synchronous->backup_workers;
    if (synchronous->backup_workers < 0 || synchronous->backup_workers >= workers) {
      throw Error(
          Code::invalid_argument,
          fmt::format(
              "update group \"{}\" has {} backup workers; expected 0 to {}, fewer than the {} workers", name,
              synchronous->backup_workers, workers - 1, workers));
    }
  }
  return request;
}

}  // namespace

UpdateGroupRegistry::UpdateGroupRegistry(cluster::Runtime& runtime, Context& context,
                                         const Recovery& recovery, PsContents& contents)
    : runtime_(runtime), context_(context), recovery_(recovery), contents_(contents) {}

void UpdateGroupRegistry::check_name_is_new(const std::string& name) const {
  check_name("update group", name);
  for (const auto* names : {&names_, &asynchronous_names_}) {
    if (std::find(names->begin(), names->end(), name) == names->end()) continue;
    throw Error(Code::already_exists, "update group \"" + name + "\" already exists; choose another name");
  }
}

void UpdateGroupRegistry::check_can_number(const std::string& name) const {
  if (!recovery_.groups().empty()) {
    throw Error(Code::unavailable,
                fmt::format("update groups ({}) do not survive the death of the coordinator; restart the job "
                            "with --resume to continue from the last checkpoint",
                            fmt::join(recovery_.groups(), ", ")));
  }
  if (names_.size() == protocol::BoardLayout::kGroups) {
    throw Error(Code::resource_exhausted,
                fmt::format("cannot create update group \"{}\": there are {}, which is the maximum", name,
                            names_.size()));
  }
}

std::uint32_t UpdateGroupRegistry::create(const std::string& name, const Synchronization& synchronization) {
  check_name_is_new(name);
  if (std::holds_alternative<Asynchronous>(synchronization)) {
    asynchronous_names_.push_back(name);
    return 0;
  }
  check_can_number(name);
  protocol::CreateGroup request = group_request(name, synchronization, runtime_.count(Role::worker));
  request.id = static_cast<std::uint32_t>(names_.size() + 1);
  for (const int rank : runtime_.membership().worker_ranks()) request.workers.push_back(rank);
  const std::vector<std::byte> bytes = to_bytes(request);
  ask_every_ps(*context_.use_client(), transport::kCreateGroup, bytes, runtime_.wait_timeout(),
               "create update group \"" + name + "\"");
  {
    const std::lock_guard lock(mutex_);
    names_.push_back(name);
  }
  contents_.add_group(name);
  runtime_.coordinator_memory().change([&](auto& record) { record.groups = names_; });
  return request.id;
}

void UpdateGroupRegistry::restart(std::uint32_t group, const std::string& name) {
  if (group == 0) return;
  ask_every_ps(*context_.use_client(), transport::kRestartGroup, transport::as_bytes(group),
               runtime_.wait_timeout(), "restart update group \"" + name + "\"");
}

std::vector<std::string> UpdateGroupRegistry::names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

}  // namespace capstan::strategy
