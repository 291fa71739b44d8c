// gpu_gradient.hpp -- a gradient in the memory of a GPU of this process, which several pushes share.
#pragma once

#include <cstdint>
#include <span>

#include "client/channel/gpu_rows.hpp"
#include "client/channel/push_rows.hpp"
#include "gpu/gpu.hpp"
#include "gpu/staging.hpp"

namespace capstan::client {

/// Kernels and copies run in the order of the stream that computed the gradient. Used by one thread.
class GpuGradient {
 public:
  /// A gradient of `rows` rows at `values`. `order` is the concatenation of PushRows::order of all its
  /// pushes, or empty if the rows of each push are consecutive. All arguments must outlive this object.
  GpuGradient(const gpu::Stream& stream, gpu::Staging& staging, GpuRows& kernels, const std::byte* values,
              std::uint64_t rows, std::uint64_t row_bytes, std::span<const std::uint32_t> order);

  int gpu() const noexcept { return stream_.device(); }
  /// Reserves the memory that contiguous() needs. Throws Error(resource_exhausted).
  void reserve();

  /// Starts to copy rows [first, first + count) of a push to `to`. The copy is done once ready() has
  /// passed.
  void copy(const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to);
  /// Returns the address of all rows of a push, which are consecutive once ready() has passed. REQUIRES:
  /// reserve().
  const std::byte* contiguous(const PushRows& push);
  /// Passes when the last copy is done.
  const gpu::Event& ready() const noexcept { return ready_; }

 private:
  /// Position of the push's first row in `order_`.
  std::uint64_t position(const PushRows& push) const noexcept {
    return static_cast<std::uint64_t>(push.order.data() - order_.data());
  }

  const gpu::Stream& stream_;
  GpuRows& kernels_;
  GpuRows::Part values_;
  std::uint64_t row_bytes_;
  std::span<const std::uint32_t> order_;
  std::byte* gathered_ = nullptr;
  gpu::Event ready_;
};

}  // namespace capstan::client
