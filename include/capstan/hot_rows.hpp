// hot_rows.hpp -- caches of frequently used rows of a variable, in the main memory or GPU of a worker.
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
  /// Cache capacity, in rows; in main memory at most the rows of the variable. Memory used: this number times
  /// the size of a row and about 64 bytes, plus the distinct rows by which a lookup exceeds the capacity.
  std::uint32_t rows = 1 << 16;
  /// Maximum age of a cached row in lookups: a row read from its ps more than this number of lookups ago is
  /// read again. 0: every lookup reads all of its rows.
  std::uint64_t staleness = 16;
};

/// Totals over all lookups; a row that occurs several times in a lookup counts once.
struct HotRowsStatistics {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;  ///< rows that were not cached
  std::uint64_t stale = 0;   ///< rows that were cached but too old
};

namespace detail {

class CAPSTAN_API HotRowBytes {
 public:
  /// Reads rows `ids` of the variable into `out` on the stream's GPU.
  using Read = std::function<void(const DeviceStream& stream, std::span<const std::int64_t> ids, void* out)>;

  HotRowBytes(int device, std::uint64_t row_bytes, HotRowsOptions options, Read read);
  ~HotRowBytes();
  HotRowBytes(HotRowBytes&&) noexcept;
  HotRowBytes& operator=(HotRowBytes&&) noexcept;

  void lookup(const DeviceStream& stream, std::span<const std::int64_t> ids, void* out);
  void evict(std::span<const std::int64_t> ids);
  HotRowsStatistics statistics() const;
  static void check_size(std::size_t elements, std::size_t rows, std::uint64_t width);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

class CAPSTAN_API HotRowBytesOnHost {
 public:
  /// Reads rows `ids` of the variable into `out`.
  using Read = std::function<void(std::span<const std::int64_t> ids, void* out)>;

  HotRowBytesOnHost(std::uint64_t row_bytes, HotRowsOptions options, Read read);
  ~HotRowBytesOnHost();
  HotRowBytesOnHost(HotRowBytesOnHost&&) noexcept;
  HotRowBytesOnHost& operator=(HotRowBytesOnHost&&) noexcept;

  void lookup(std::span<const std::int64_t> ids, void* out);
  void evict(std::span<const std::int64_t> ids);
  HotRowsStatistics statistics() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace detail

/// Cache of rows in main memory, for variables whose ps are on other hosts. If a small set of rows receives
/// most of the lookups, few rows cross the network. Lookups of rows that a worker maps are faster without it.
/// Evicts as HotRows does. Used by one thread at a time.
template <class T>
class HotRowsOnHost {
 public:
  using element_type = Element<T>;

  /// Throws Error(invalid_argument) for 0 rows.
  explicit HotRowsOnHost(const Variable<T>& variable, HotRowsOptions options = {})
      : width_(variable.width()),
        rows_(width_ * sizeof(element_type), within(variable.rows(), options),
              [variable](std::span<const std::int64_t> ids, void* out) {
                variable.lookup(ids,
                                std::span(static_cast<element_type*>(out), ids.size() * variable.width()));
              }) {}

  /// As Variable::lookup, but rows may be as old as the options allow. Throws as Variable::lookup does; rows
  /// that could not be read are not cached.
  void lookup(ConstSpan<std::int64_t> ids, std::span<element_type> out) {
    detail::HotRowBytes::check_size(out.size(), ids.size(), width_);
    rows_.lookup(ids, out.data());
  }
  Rows<T> lookup(ConstSpan<std::int64_t> ids) {
    Rows<T> rows{Buffer<element_type>(ids.size() * width_), width_};
    rows_.lookup(ids, rows.values.data());
    return rows;
  }
  /// As HotRows::evict.
  void evict(ConstSpan<std::int64_t> ids) { rows_.evict(ids); }
  HotRowsStatistics statistics() const { return rows_.statistics(); }

 private:
  static HotRowsOptions within(std::uint64_t rows, HotRowsOptions options) {
    if (rows != 0 && rows < options.rows) options.rows = static_cast<std::uint32_t>(rows);
    return options;
  }

  std::uint64_t width_;
  detail::HotRowBytesOnHost rows_;
};

/// Cache of rows in GPU memory. If a small set of rows, such as frequent words or popular items, receives
/// most of the lookups, most rows need no transfer from the host. Evicts rows that were not used again since
/// the last eviction (the "clock" algorithm of page replacement, Corbato 1968). Used by one thread at a time.
template <class T>
class HotRows {
 public:
  using element_type = Element<T>;

  /// Throws Error: resource_exhausted, out_of_range for a GPU that does not exist, invalid_argument for 0
  /// rows.
  HotRows(Variable<T> variable, int device, HotRowsOptions options = {})
      : width_(variable.width()),
        rows_(device, width_ * sizeof(element_type), options,
              [variable = std::move(variable)](const DeviceStream& stream, std::span<const std::int64_t> ids,
                                               void* out) {
                variable.lookup(stream, ids,
                                DeviceSpan(static_cast<element_type*>(out), ids.size() * variable.width()));
              }) {}

  /// As Variable::lookup, but rows may be as old as the options allow. REQUIRES: a stream of the device.
  /// Throws as Variable::lookup does; rows that could not be read are not cached.
  void lookup(const DeviceStream& stream, std::span<const std::int64_t> ids, DeviceSpan<element_type> out) {
    detail::HotRowBytes::check_size(out.size(), ids.size(), width_);
    rows_.lookup(stream, ids, out.data());
  }
  /// Evicts these rows, so that the next lookup reads them from the ps. To read its own update, a worker
  /// calls this after a push to the rows and a flush.
  void evict(std::span<const std::int64_t> ids) { rows_.evict(ids); }
  HotRowsStatistics statistics() const { return rows_.statistics(); }

 private:
  std::uint64_t width_;
  detail::HotRowBytes rows_;
};

}  // namespace capstan
