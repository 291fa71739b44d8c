// hot_rows_on_host.cpp -- reads the rows that are missing or too old, and copies all rows from their slots.
#include <cstring>
#include <vector>

#include "capstan/buffer.hpp"
#include "capstan/hot_rows.hpp"
#include "protocol/row_copy.hpp"
#include "strategy/hot_row_index.hpp"

namespace capstan::detail {

class HotRowBytesOnHost::Implementation {
 public:
  Implementation(std::uint64_t row_bytes, const HotRowsOptions& options, Read read)
      : row_bytes_(row_bytes), read_(std::move(read)), index_(options) {}

  void lookup(std::span<const std::int64_t> ids, std::byte* out) {
    if (ids.empty() || row_bytes_ == 0) return;
    const strategy::HotRowIndex::Plan& plan = index_.plan(ids);
    if (!plan.to_read.empty()) {
      try {
        read(plan);
      } catch (...) {
        index_.evict(plan.to_read);
        throw;
      }
    }
    protocol::gather_rows(rows_.data(), row_bytes_, plan.slots, {}, out);
  }
  strategy::HotRowIndex& index() noexcept { return index_; }

 private:
  void read(const strategy::HotRowIndex::Plan& plan) {
    if (rows_.size() < plan.rows * row_bytes_) {
      rows_.reserve(plan.rows * row_bytes_);  // exactly
      rows_.resize(plan.rows * row_bytes_);
    }
    Buffer<std::byte> fetched(plan.to_read.size() * row_bytes_);
    read_(plan.to_read, fetched.data());
    for (std::size_t i = 0; i < plan.read_slots.size(); ++i) {
      std::memcpy(rows_.data() + plan.read_slots[i] * row_bytes_, fetched.data() + i * row_bytes_,
                  row_bytes_);
    }
  }

  std::uint64_t row_bytes_;
  Read read_;
  strategy::HotRowIndex index_;
  std::vector<std::byte> rows_;  // by slot
};

HotRowBytesOnHost::HotRowBytesOnHost(std::uint64_t row_bytes, HotRowsOptions options, Read read)
    : implementation_(std::make_unique<Implementation>(row_bytes, options, std::move(read))) {}
HotRowBytesOnHost::~HotRowBytesOnHost() = default;
HotRowBytesOnHost::HotRowBytesOnHost(HotRowBytesOnHost&&) noexcept = default;
HotRowBytesOnHost& HotRowBytesOnHost::operator=(HotRowBytesOnHost&&) noexcept = default;

void HotRowBytesOnHost::lookup(std::span<const std::int64_t> ids, void* out) {
  implementation_->lookup(ids, static_cast<std::byte*>(out));
}
void HotRowBytesOnHost::evict(std::span<const std::int64_t> ids) { implementation_->index().evict(ids); }
HotRowsStatistics HotRowBytesOnHost::statistics() const { return implementation_->index().statistics(); }

}  // namespace capstan::detail
