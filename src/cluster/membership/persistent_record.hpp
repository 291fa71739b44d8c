// persistent_record.hpp -- one value in persistent memory, which stays complete if the writer is killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/memory/persistent_memory.hpp"

namespace capstan::cluster {

/// Has two buffers, which writes use alternately. For one writer at a time.
class PersistentRecord {
 public:
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;

  /// Throws Error(resource_exhausted).
  explicit PersistentRecord(std::shared_ptr<transport::PersistentMemory> memory);

  /// Returns the last value; empty if none was written.
  std::vector<std::byte> read() const;
  /// Throws Error(resource_exhausted) for more than kMaxBytes.
  void write(std::span<const std::byte> bytes);

 private:
  struct Head {
    std::uint64_t written;   // number of writes, which determines the valid buffer
    std::uint64_t bytes[2];  // size of the value in each buffer
  };
  std::byte* buffer(std::uint64_t number) const noexcept;

  std::shared_ptr<transport::PersistentMemory> memory_;
  Head* head_;
};

}  // namespace capstan::cluster
