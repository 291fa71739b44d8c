// device_context.cpp -- opens the GPU and waits for it.
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
    if (!find_) throw Error(Code::failed_precondition, "this process is not configured to use a GPU");
    return gpu_ = std::make_shared<ShardGpu>(find_(), deterministic_);
  } catch (const Error& error) {
    if (error.code() == Code::resource_exhausted) throw;
    throw Error(
        Code::failed_precondition,
        fmt::format("cannot create variable \"{}\" in GPU memory: ps {} has no usable GPU: {}; run the ps "
                    "on a host with a GPU, or create the variable in host memory (ShardMemory::host, "
                    "--ps-memory host)",
                    variable, ps_index_, error.what()));
  }
}

/// Clears `unsettled_` last, since other threads read it without the mutex.
void DeviceContext::settle() {
  if (!unsettled()) return;
  run([this] { gpu_->settle(); });
  unsettled_.store(false, std::memory_order_release);
}

protocol::StagingBufferKey DeviceContext::open_staging_buffer(int rank, std::uint64_t bytes) {
  return gpu_ ? staging_.open(rank, gpu_->number(), bytes) : protocol::StagingBufferKey();
}

}  // namespace capstan::ps
