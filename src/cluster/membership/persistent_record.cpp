// persistent_record.cpp -- two buffers, and a page with the number of writes, which selects the valid buffer.
#include "cluster/membership/persistent_record.hpp"

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "capstan/error.hpp"

namespace capstan::cluster {
namespace {

constexpr std::uint64_t kPage = 4096;

}  // namespace

PersistentRecord::PersistentRecord(std::shared_ptr<transport::PersistentMemory> memory)
    : memory_(std::move(memory)),
      head_(reinterpret_cast<Head*>(
          memory_->map(transport::PersistentMemory::kFirstOffset, kPage + 2 * kMaxBytes).data())) {}

std::byte* PersistentRecord::buffer(std::uint64_t number) const noexcept {
  return reinterpret_cast<std::byte*>(head_) + kPage + (number % 2) * kMaxBytes;
}

std::vector<std::byte> PersistentRecord::read() const {
  if (head_->written == 0) return {};
  const std::byte* at = buffer(head_->written);
  return {at, at + head_->bytes[head_->written % 2]};
}

void PersistentRecord::write(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxBytes) {
    throw Error(Code::resource_exhausted, "a record of " + std::to_string(bytes.size()) +
                                              " bytes does not fit, expected at most " +
                                              std::to_string(kMaxBytes >> 20) + " MiB");
  }
  const std::uint64_t next = head_->written + 1;
  if (!bytes.empty()) std::memcpy(buffer(next), bytes.data(), bytes.size());
  head_->bytes[next % 2] = bytes.size();
  // A killed process leaves the effects of its stores in program order, so compiler fences suffice.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  head_->written = next;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace capstan::cluster
