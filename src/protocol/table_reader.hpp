// table_reader.hpp -- reads of a dynamic table's shard that another thread or process may be changing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "protocol/key_search.hpp"
#include "protocol/table_layout.hpp"

namespace capstan::protocol {

/// The memory of a shard. Any thread.
class TableReader {
 public:
  /// `memory`: memory of the shard. Both arguments must outlive this object.
  TableReader(const std::byte* memory, const TableLayout& layout) : memory_(memory), layout_(&layout) {}

  /// The state of the sub-indexes when a read began.
  class Epochs {
   public:
    Epochs() = default;
    explicit Epochs(const TableReader& reader) noexcept { begin(reader); }
    void begin(const TableReader& reader) noexcept;
    /// The index in which the read searches.
    const IndexLines& index() const noexcept { return index_; }
    /// Returns false if the row that was copied for a key since `begin` may belong to another key, or if a
    /// search may have missed the key. Evaluates the last check().
    bool valid(std::uint64_t hash) const noexcept {
      return !changed_any_ || !changed_[hash % TableHeader::kSubIndexes];
    }
    /// Compares all epochs with those of `begin`. Returns true if none has changed. REQUIRES: an acquire
    /// fence after the copy.
    bool check(const TableReader& reader) noexcept;

   private:
    IndexLines index_;
    std::array<std::uint64_t, TableHeader::kSubIndexes> epochs_{};
    std::array<bool, TableHeader::kSubIndexes> changed_{};
    bool changed_any_ = false;
  };

  /// Returns the address of row 0.
  const std::byte* values() const noexcept { return memory_ + layout_->values(); }
  const TableHeader& header() const noexcept { return *reinterpret_cast<const TableHeader*>(memory_); }

 private:
  const std::byte* memory_;
  const TableLayout* layout_;
};

}  // namespace capstan::protocol
