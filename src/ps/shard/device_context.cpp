// device_context.cpp -- opening the GPU, and waiting for it.
#include "ps/shard/device_context.hpp"

#include <fmt/format.h>

#include <utility>

#include "capstan/error.hpp"

namespace capstan::ps {

void DeviceContext::configure(FindGpu find, bool deterministic) {
  find_ = std::move(find);
  deterministic_ = deterministic;
}

std::shared_ptr<ShardGpu> DeviceContext::open(const std::string& variable) {
  if (gpu_) return gpu_;
  try {
    if (!find_) throw Error(Code::failed_precondition, "its process looks for none");
    return gpu_ = std::make_shared<ShardGpu>(find_(), deterministic_);
  } catch (const Error& error) {
    if (error.code() == Code::resource_exhausted) throw;
    throw Error(
        Code::failed_precondition,
        fmt::format("variable \"{}\" is to lie in the memory of a GPU, and ps {} has none to use: {}; "
                    "start the ps where there is one, or leave the variable in the memory of hosts "
                    "(ShardMemory::host, --ps-memory host)",
                    variable, ps_index_, error.what()));
  }
}

/// Other threads read the flag without the mutex.
void DeviceContext::settle() {
  if (!unsettled()) return;
  run([this] { gpu_->settle(); });
  unsettled_.store(false, std::memory_order_release);
}

protocol::StagingBufferKey DeviceContext::open_staging_buffer(int rank, std::uint64_t bytes) {
  return gpu_ ? staging_.open(rank, gpu_->number(), bytes) : protocol::StagingBufferKey();
}

}  // namespace capstan::ps
