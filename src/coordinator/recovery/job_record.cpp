// job_record.cpp -- writes the coordinator's record.
#include "coordinator/recovery/job_record.hpp"

#include <utility>

#include "base/log.hpp"

namespace capstan::coordinator {

void JobRecord::recover() { lacks_start_ = runtime_.coordinator_memory().read().too_much_open; }

void JobRecord::require_start() {
  if (!lacks_start_) return;
  runtime_.coordinator_memory().read().require_not_too_much_open();
  lacks_start_ = false;
}

void JobRecord::record_step(std::int64_t step) {
  queue_.join(std::nullopt);
  strategy_.context().client().flush();  // pushes of the program itself
  const std::uint64_t next = queue_.next_id();
  queue_.mark_recorded();
  runtime_.coordinator_memory().change([&](cluster::CoordinatorRecord& record) {
    record.step = step;
    record.next_closure = next;
    record.too_much_open = false;
  });
}

void JobRecord::update() {
  if (!runtime_.coordinator_may_return()) return;
  if (std::exchange(members_changed_, false)) record_members();
  check_open_closures();
}

void JobRecord::record_members() {
  const cluster::Membership& members = runtime_.membership();
  runtime_.coordinator_memory().change([&](cluster::CoordinatorRecord& record) {
    record.ps.clear();
    record.workers.clear();
    record.lost.clear();
    for (cluster::Member& member : members.table_now().members) {
      if (member.role != Role::ps) continue;
      member.data_address = member.control_address;  // this process learns the control address first
      record.ps.push_back(std::move(member));
    }
    for (const int rank : members.worker_ranks()) {
      if (static_cast<std::size_t>(rank) >= runtime_.members().size())
        record.workers.push_back(members.member(rank));
      if (members.is_lost(rank)) record.lost.push_back(rank);
    }
  });
}

void JobRecord::check_open_closures() {
  if (lacks_start_ && !runtime_.coordinator_memory().read().too_much_open) lacks_start_ = false;
  const auto is_too_much = [this] { return queue_.since_recorded() > cluster::kMostOpenClosures; };
  const bool too_much = is_too_much();
  if (too_much == std::exchange(too_much_open_, too_much) || !too_much) return;
  log::warn(
      "{} functions were scheduled since the last record_step(): if this coordinator dies now, the next one "
      "can only resume from a checkpoint",
      cluster::kMostOpenClosures);
  runtime_.coordinator_memory().change(
      [&](cluster::CoordinatorRecord& record) { record.too_much_open = is_too_much(); });
}

}  // namespace capstan::coordinator
