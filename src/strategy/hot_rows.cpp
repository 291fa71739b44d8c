// hot_rows.cpp -- reads rows into an array of the GPU, scatters them to their slots and gathers them from
// there.
#include "capstan/hot_rows.hpp"

#include <fmt/format.h>

#include <cstring>

#include "capstan/error.hpp"
#include "gpu/row_ops.hpp"
#include "gpu/staging.hpp"
#include "strategy/hot_row_index.hpp"

namespace capstan::detail {
namespace {

using gpu::Values;

/// Reallocates `values` if there are fewer than `count`. First waits for the GPU and frees the old values.
template <class T>
void reserve_values(Values<T>& values, int device, std::size_t count) {
  if (values.size() >= count) return;
  values = {};
  values = Values<T>(device, count);
}

}  // namespace

class HotRowBytes::Implementation {
 public:
  Implementation(int device, std::uint64_t row_bytes, const HotRowsOptions& options, Read read)
      : device_(device),
        row_bytes_(row_bytes),
        read_(std::move(read)),
        index_(options),
        staging_(device),
        used_(device),
        rows_(device, options.rows * row_bytes),
        first_bad_(device, 1) {}

  void lookup(const DeviceStream& stream, std::span<const std::int64_t> ids, void* out) {
    if (ids.empty() || row_bytes_ == 0) return;
    if (stream.device() != device_) {
      throw Error(Code::invalid_argument,
                  fmt::format("HotRows on GPU {}: lookup on a stream of GPU {}; use a stream of the same GPU",
                              device_, stream.device()));
    }
    stream.implementation().begin_after(used_);  // the previous lookup may have used another stream
    const strategy::HotRowIndex::Plan& plan = index_.plan(ids);
    try {
      read(stream, plan);
      gather(stream, plan, static_cast<std::byte*>(out));
    } catch (...) {
      index_.evict(plan.to_read);
      used_.record(stream.implementation());  // work that was submitted before the error
      throw;
    }
    used_.record(stream.implementation());
  }
  strategy::HotRowIndex& index() noexcept { return index_; }

 private:
  void read(const DeviceStream& stream, const strategy::HotRowIndex::Plan& plan) {
    if (rows_.size() < plan.rows * row_bytes_) grow(stream, plan.rows);
    if (plan.to_read.empty()) return;
    reserve_values(fetched_, device_, plan.to_read.size() * row_bytes_);
    read_(stream, plan.to_read, fetched_.data());
    gpu::scatter(stream.implementation(), copy_of(stream, plan, plan.read_slots, fetched_.data()));
  }
  void gather(const DeviceStream& stream, const strategy::HotRowIndex::Plan& plan, std::byte* out) {
    gpu::gather(stream.implementation(), copy_of(stream, plan, plan.slots, out));
  }
  /// Copies `row_slots` to the GPU and describes a copy of the rows in these slots.
  gpu::RowCopy copy_of(const DeviceStream& stream, const strategy::HotRowIndex::Plan& plan,
                       const std::vector<std::uint32_t>& row_slots, std::byte* outside) {
    Values<std::uint32_t>& on_gpu = &row_slots == &plan.slots ? slots_ : read_slots_;
    reserve_values(on_gpu, device_, row_slots.size());
    const auto* bytes = reinterpret_cast<const std::byte*>(row_slots.data());
    staging_.to_gpu(stream.implementation(), reinterpret_cast<std::byte*>(on_gpu.data()),
                    row_slots.size() * sizeof(std::uint32_t), sizeof(std::uint32_t),
                    [&](std::uint64_t first, std::size_t count, std::byte* to) {
                      std::memcpy(to, bytes + first, count);
                    });
    return {rows_.data(),
            plan.rows,
            row_bytes_,
            on_gpu.data(),
            static_cast<std::uint32_t>(row_slots.size()),
            outside,
            first_bad_.data()};
  }
  void grow(const DeviceStream& stream, std::uint32_t rows) {
    Values<std::byte> larger(device_, rows * row_bytes_);
    gpu::copy(stream.implementation(), larger.data(), rows_.data(), rows_.size());
    stream.wait();
    rows_ = std::move(larger);
  }

  int device_;
  std::uint64_t row_bytes_;
  Read read_;
  strategy::HotRowIndex index_;
  gpu::Staging staging_;
  gpu::Event used_;
  Values<std::byte> rows_;            // by slot
  Values<std::byte> fetched_;         // in the order of a plan's to_read
  Values<std::uint32_t> slots_;       // slots of a lookup's ids
  Values<std::uint32_t> read_slots_;  // slots of the rows that a lookup reads
  Values<std::uint32_t> first_bad_;   // output of gather and scatter; slots are always valid
};

HotRowBytes::HotRowBytes(int device, std::uint64_t row_bytes, HotRowsOptions options, Read read)
    : implementation_(std::make_unique<Implementation>(device, row_bytes, options, std::move(read))) {}
HotRowBytes::~HotRowBytes() = default;
HotRowBytes::HotRowBytes(HotRowBytes&&) noexcept = default;
HotRowBytes& HotRowBytes::operator=(HotRowBytes&&) noexcept = default;

void HotRowBytes::lookup(const DeviceStream& stream, std::span<const std::int64_t> ids, void* out) {
  implementation_->lookup(stream, ids, out);
}
void HotRowBytes::evict(std::span<const std::int64_t> ids) { implementation_->index().evict(ids); }
HotRowsStatistics HotRowBytes::statistics() const { return implementation_->index().statistics(); }

void HotRowBytes::check_size(std::size_t elements, std::size_t rows, std::uint64_t width) {
  if (elements == rows * width) return;
  throw Error(Code::invalid_argument,
              fmt::format("lookup of hot rows: {} rows of {} elements make {} elements, the output holds {}",
                          rows, width, rows * width, elements));
}

}  // namespace capstan::detail
