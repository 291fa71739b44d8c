// device_shard.hpp -- a shard in the memory of a ps's GPU.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gpu/gpu.hpp"
#include "ps/shard/device_context.hpp"
#include "ps/shard/device_table.hpp"
#include "ps/shard/shard.hpp"

namespace capstan::ps {

/// Applies pushes asynchronously, in order with reads and snapshots. The rows are lost with the process.
class DeviceShard final : public Shard {
 public:
  /// Allocates a zeroed shard. `context` must outlive it. Throws Error: failed_precondition (no GPU),
  /// resource_exhausted, invalid_argument.
  DeviceShard(const protocol::CreateShard& description, const protocol::ShardLocation& location,
              const Words& words, DeviceContext& context);

  void initialize() override;
  void gather(std::span<const std::uint32_t> rows, std::byte* out) const override;
  void gather(std::uint64_t first_byte, std::span<std::byte> out) const override;
  bool freeze_copies_rows() const noexcept override { return true; }
  std::uint64_t device_bytes() const noexcept override { return table_.bytes(); }

  /// Allocates memory for pushes of up to `rows` rows whose gradients are in the memory of GPU `gpu`. Returns
  /// false if such pushes are not supported. Throws Error(resource_exhausted).
  bool reserve_from_device(int gpu, std::uint64_t rows);
  /// See protocol::DevicePushSink::apply.
  void apply_from_device(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                         const std::byte* gradient, const gpu::Event& ready);

  const DeviceTable& table() const noexcept { return table_; }

 private:
  void update(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
              const std::byte* values) override;
  bool is_staged(const protocol::PushHeader& header, const std::byte* buffer_slot) const override {
    return staged_gradient(header, buffer_slot) != nullptr;
  }
  std::shared_ptr<FrozenRows> freeze_rows(std::optional<TouchedRows> touched) override;
  void restore_rows(const protocol::RestoreShard& from, RestoreFiles& files) override;

  UpdateStep step() const noexcept { return {steps(), learning_rate()}; }
  void initialize_values();
  void initialize_slots();
  /// Returns the address of the gradient that the protocol::BufferSlot at `buffer_slot` refers to, or null if
  /// it is not in a staging buffer of the pusher.
  std::byte* staged_gradient(const protocol::PushHeader& header, const std::byte* buffer_slot) const;

  DeviceContext& context_;
  DeviceTable table_;
};

}  // namespace capstan::ps
