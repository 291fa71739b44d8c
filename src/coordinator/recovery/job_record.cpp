// job_record.cpp -- updates the CoordinatorRecord.
#include "coordinator/recovery/job_record.hpp"

#include <utility>

#include "base/log.hpp"

namespace capstan::coordinator {

void JobRecord::recover() { needs_restore_ = runtime_.coordinator_memory().read().too_many_unrecorded; }

void JobRecord::require_restored() {
  if (!needs_restore_) return;
  runtime_.coordinator_memory().read().require_resumable();
  needs_restore_ = false;
}

void JobRecord::record_step(std::int64_t step) {
  queue_.join(std::nullopt);
  strategy_.context().use_client()->flush();  // pushes of the program itself
  const std::uint64_t next = queue_.next_id();
  queue_.mark_recorded();
  runtime_.coordinator_memory().change([&](cluster::CoordinatorRecord& record) {
    record.step = step;
    record.next_closure = next;
    record.too_many_unrecorded = false;
  });
}

void JobRecord::update() {
  if (!runtime_.coordinator_may_return()) return;
  if (std::exchange(members_changed_, false)) record_members();
  check_unrecorded_closures();
}

void JobRecord::record_members() {
  const cluster::Membership& members = runtime_.membership();
  runtime_.coordinator_memory().change([&](cluster::CoordinatorRecord& record) {
    record.ps.clear();
    record.workers.clear();
    record.lost.clear();
    for (cluster::Member& member : members.table_now().members) {
      if (member.role != Role::ps) continue;
      member.data_address = member.control_address;  // the data address is not known here
      record.ps.push_back(std::move(member));
    }
    for (const int rank : members.worker_ranks()) {
      // Only restarted or late workers: the others are in the table of the job's start.
      if (static_cast<std::size_t>(rank) >= runtime_.members().size())
        record.workers.push_back(members.member(rank));
      if (members.is_lost(rank)) record.lost.push_back(rank);
    }
  });
}

void JobRecord::check_unrecorded_closures() {
  // A restored checkpoint and record_step() clear the flag of the record.
  if (needs_restore_ && !runtime_.coordinator_memory().read().too_many_unrecorded) needs_restore_ = false;
  const auto too_many_now = [this] { return queue_.since_recorded() > cluster::kMaxUnrecordedClosures; };
  const bool too_many = too_many_now();
  const bool was_too_many = std::exchange(too_many_unrecorded_, too_many);
  if (!too_many || was_too_many) return;
  log::warn(
      "more than {} functions were scheduled since the last record_step(): if this coordinator dies now, the "
      "next one can only resume from a checkpoint",
      cluster::kMaxUnrecordedClosures);
  // Counts again under the lock, because record_step() may have run in another thread meanwhile.
  runtime_.coordinator_memory().change(
      [&](cluster::CoordinatorRecord& record) { record.too_many_unrecorded = too_many_now(); });
}

}  // namespace capstan::coordinator
