// hot_rows.hpp -- rows of a variable that a worker uses often, kept in its GPU's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "capstan/detail/export.hpp"
#include "capstan/device.hpp"
#include "capstan/variable.hpp"

namespace capstan {

struct HotRowsOptions {
  /// That are kept; what they take of the GPU's memory is this times a row, and what a lookup of more
  /// different rows has beyond that.
  std::uint32_t rows = 1 << 16;
  /// A row that a lookup gives was read from its ps by that lookup or one of the last so many: an older one
  /// is read anew. 0: every lookup reads all of its rows.
  std::uint64_t staleness = 16;
};

/// Of all lookups so far, by different rows of each.
struct HotRowsStatistics {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;  ///< were not there
  std::uint64_t stale = 0;   ///< were there, and too old
};

namespace detail {

class CAPSTAN_API HotRowBytes {
 public:
  /// Rows of the variable `ids`, into `out` on the stream's GPU.
  using Read = std::function<void(const DeviceStream& stream, std::span<const std::int64_t> ids, void* out)>;

  HotRowBytes(int device, std::uint64_t row_bytes, HotRowsOptions options, Read read);
  ~HotRowBytes();
  HotRowBytes(HotRowBytes&&) noexcept;
  HotRowBytes& operator=(HotRowBytes&&) noexcept;

  void lookup(const DeviceStream& stream, std::span<const std::int64_t> ids, void* out);
  void forget(std::span<const std::int64_t> ids);
  HotRowsStatistics statistics() const;
  static void check_room(std::size_t elements, std::size_t rows, std::uint64_t width);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace detail

/// Where few rows are named by most lookups, as words and popular items are, most rows of a lookup are copied
/// within the GPU's memory and do not travel. Which rows are kept: those that were named again since the last
/// time that room was needed (the "clock" rule of page replacement, Corbato 1968). Used by one thread at a
/// time.
template <class T>
class HotRows {
 public:
  using element_type = Element<T>;

  /// Throws Error: resource_exhausted, out_of_range for a GPU that is not there, invalid_argument for 0 rows.
  HotRows(Variable<T> variable, int device, HotRowsOptions options = {})
      : width_(variable.width()),
        rows_(device, width_ * sizeof(element_type), options,
              [variable = std::move(variable)](const DeviceStream& stream, std::span<const std::int64_t> ids,
                                               void* out) {
                variable.lookup(stream, ids,
                                DeviceSpan(static_cast<element_type*>(out), ids.size() * variable.width()));
              }) {}

  /// As Variable::lookup, but that rows may be as old as the options say. REQUIRES: a stream of the device.
  /// Throws what that throws; rows that could not be read are not kept.
  void lookup(const DeviceStream& stream, std::span<const std::int64_t> ids, DeviceSpan<element_type> out) {
    detail::HotRowBytes::check_room(out.size(), ids.size(), width_);
    rows_.lookup(stream, ids, out.data());
  }
  /// The next lookups that name these rows read them anew: after a push to them, and a flush, a worker sees
  /// its own.
  void forget(std::span<const std::int64_t> ids) { rows_.forget(ids); }
  HotRowsStatistics statistics() const { return rows_.statistics(); }

 private:
  std::uint64_t width_;
  detail::HotRowBytes rows_;
};

}  // namespace capstan
