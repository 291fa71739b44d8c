// persistent_record.hpp -- one value in kept memory: what a process last wrote, whole, whenever it was
// killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/memory/persistent_memory.hpp"

namespace capstan::cluster {

/// For one writer at a time. Two places, used in turn.
class PersistentRecord {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;

  /// Throws Error(resource_exhausted).
  explicit PersistentRecord(std::shared_ptr<transport::PersistentMemory> memory);

  /// Empty: nothing has been written.
  std::vector<std::byte> read() const;
  /// Throws Error(resource_exhausted) for more than kMostBytes.
  void write(std::span<const std::byte> bytes);

 private:
  struct Head {
    std::uint64_t written;   // how often; the last one's place follows
    std::uint64_t bytes[2];  // by place
  };
  std::byte* place(std::uint64_t number) const noexcept;

  std::shared_ptr<transport::PersistentMemory> memory_;
  Head* head_;
};

}  // namespace capstan::cluster
