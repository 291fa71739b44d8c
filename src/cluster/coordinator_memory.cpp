// coordinator_memory.cpp -- every change is written at once, whole.
#include "cluster/coordinator_memory.hpp"

#include <utility>

#include "capstan/serialize.hpp"

namespace capstan::cluster {

void CoordinatorMemory::keep_in(std::shared_ptr<transport::KeptMemory> memory) {
  const std::lock_guard lock(mutex_);
  kept_ = std::make_unique<KeptRecord>(std::move(memory));
  if (const auto bytes = kept_->read(); !bytes.empty()) record_ = from_bytes<CoordinatorRecord>(bytes);
}

CoordinatorRecord CoordinatorMemory::read() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

void CoordinatorMemory::change(const std::function<void(CoordinatorRecord&)>& how) {
  const std::lock_guard lock(mutex_);
  how(record_);
  if (kept_) kept_->write(to_bytes(record_));
}

}  // namespace capstan::cluster
