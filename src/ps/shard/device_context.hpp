// device_context.hpp -- the GPU shared by the shards of one store, opened by the first of them.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "ps/shard/shard_gpu.hpp"
#include "ps/shard/staging_buffers.hpp"

namespace capstan::ps {

/// Calls require the mutex of the store, except `unsettled` and `failed`. Must outlive the shards.
class DeviceContext {
 public:
  /// Returns the number of the GPU to use. Throws Error if there is none.
  using FindGpu = std::function<int()>;

  explicit DeviceContext(int ps_index) : ps_index_(ps_index) {}

  /// `find` is called when the first shard needs a GPU; `deterministic`: see ShardGpu. REQUIRES: `open` was
  /// not called yet.
  void configure(FindGpu find, bool deterministic);
  /// Returns the GPU for a shard of the named variable. Throws Error: failed_precondition (no GPU),
  /// resource_exhausted.
  std::shared_ptr<ShardGpu> open(const std::string& variable);

  /// Returns true while the GPU may be applying pushes. Becomes false only once all of them are applied.
  bool unsettled() const noexcept { return unsettled_.load(std::memory_order_acquire); }
  /// Blocks until the GPU has applied all pushes. Throws the failure of the GPU, if any.
  void settle();
  /// Calls `f`, which submits a push to the GPU.
  template <class F>
  void apply(const F& f) {
    unsettled_.store(true, std::memory_order_relaxed);
    run(f);
  }
  /// Calls `f`, which uses the GPU, and records its exception for `rethrow_failure`.
  template <class F>
  void run(const F& f) {
    try {
      f();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
      failed_.store(true, std::memory_order_release);
      throw;
    }
  }
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[noreturn]] void rethrow_failure() const { std::rethrow_exception(failure_); }

  /// See StagingBuffers. Returns an empty key if no shard is on a GPU.
  protocol::StagingBufferKey open_staging_buffer(int rank, std::uint64_t bytes);
  void release_staging_buffers(int rank) noexcept { staging_.release(rank); }
  std::byte* staged(const protocol::BufferSlot& slot, std::uint32_t rank,
                    std::uint64_t bytes) const noexcept {
    return staging_.at(slot, rank, bytes);
  }

 private:
  int ps_index_;
  FindGpu find_;
  bool deterministic_ = false;
  std::shared_ptr<ShardGpu> gpu_;  // null: not opened
  StagingBuffers staging_;
  std::atomic<bool> unsettled_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  // the first failure
};

}  // namespace capstan::ps
