// coordinator_memory.cpp -- writes the complete record at every change.
#include "cluster/membership/coordinator_memory.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan::cluster {

bool CoordinatorRecord::is_standby(int spare_rank) const {
  return std::none_of(spares.begin(), spares.end(), [spare_rank](const SpareRecord& spare) {
    return spare.rank == spare_rank && spare.state != SpareRecord::State::standby;
  });
}

void CoordinatorRecord::require_resumable() const {
  if (!too_many_unrecorded) return;
  throw Error(
      Code::data_loss,
      "more than " + std::to_string(kMaxUnrecordedClosures) +
          " functions were scheduled after the last record_step(), so the restarted coordinator cannot "
          "resume from there; restore a checkpoint first");
}

void CoordinatorMemory::set_persistent_memory(std::shared_ptr<transport::PersistentMemory> memory) {
  const std::lock_guard lock(mutex_);
  persistent_ = std::make_unique<PersistentRecord>(std::move(memory));
  if (const auto bytes = persistent_->read(); !bytes.empty()) record_ = from_bytes<CoordinatorRecord>(bytes);
}

CoordinatorRecord CoordinatorMemory::read() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

void CoordinatorMemory::change(const std::function<void(CoordinatorRecord&)>& how) {
  const std::lock_guard lock(mutex_);
  how(record_);
  if (persistent_) persistent_->write(to_bytes(record_));
}

}  // namespace capstan::cluster
