// row_ops.hpp -- rows of a table in a GPU's memory: read, written, updated by an optimizer.
//
// All pointers are to memory of the stream's GPU. The calls return when the work has been given to the
// stream. Rows are numbers within the table; those that are not are left out, and noted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/with_type.hpp"
#include "capstan/optimizers.hpp"
#include "gpu/gpu.hpp"
#include "gpu/rounding.hpp"

namespace capstan::gpu {

/// Rows of a table and, for each, one outside.
struct RowCopy {
  std::byte* table = nullptr;
  std::uint32_t table_rows = 0;
  std::uint64_t row_bytes = 0;
  const std::uint32_t* rows = nullptr;
  std::uint32_t count = 0;  // of `rows`
  std::byte* outside = nullptr;
  /// The smallest i with a rows[i] that is not in the table is noted here, where there is a smaller one than
  /// before. REQUIRES: the caller has set it to kNoBadRow.
  std::uint32_t* first_bad = nullptr;
};
/// outside[i] = table[rows[i]]; zeros for rows that are not in the table.
void gather(const Stream& stream, const RowCopy& copy);
/// table[rows[i]] = outside[i]. REQUIRES: no row twice.
void scatter(const Stream& stream, const RowCopy& copy);

/// Rows that lie anywhere.
struct RowsAt {
  const std::uint64_t* addresses = nullptr;  // that the stream's GPU reaches
  std::uint32_t count = 0;                   // of them
  std::uint64_t row_bytes = 0;
  std::uint64_t multiple = 1;  // of which all addresses and row_bytes are: a power of two
  std::byte* out = nullptr;
};
/// out[i] = the row at addresses[i].
void gather(const Stream& stream, const RowsAt& rows);

/// What one push does to one shard, as ps::Update says for the CPU. REQUIRES: pointers as an allocation
/// gives them, or to whole rows behind that.
template <class T>
struct Update {
  T* values = nullptr;
  Arithmetic<T>* slot0 = nullptr;
  Arithmetic<T>* slot1 = nullptr;
  std::uint64_t width = 0;
  std::uint32_t table_rows = 0;
  const std::uint32_t* rows = nullptr;  // null: first_row and the next ones
  std::uint32_t first_row = 0;
  std::uint32_t count = 0;
  T* gradient = nullptr;               // changed, where a row is named twice
  std::int64_t step = 1;               // t of Adam and AdamW
  Rounding rounding;                   // of 16-bit tables
  std::uint32_t* first_bad = nullptr;  // as in RowCopy; not looked at where `rows` is null
};

/// Memory that updates need beside their tables: 1 byte a row of the gradient (21 when deterministic), and
/// for 16-bit tables the gradient in float. One stream, and one thread at a time.
class UpdateRoom {
 public:
  /// `deterministic`: sums are made in an order that does not change from run to run, which takes a sort.
  explicit UpdateRoom(bool deterministic) : deterministic_(deterministic) {}

  bool deterministic() const noexcept { return deterministic_; }
  /// For gradients of up to so many rows, and of up to so many elements of 16 bits. Throws
  /// Error(resource_exhausted), and then has what it had.
  void reserve(const Stream& stream, std::uint32_t rows, std::uint64_t narrow_elements);

 private:
  friend class Updater;

  bool deterministic_;
  Values<std::uint8_t> owns_;
  Values<float> widened_;
  // Of a sort: what goes in and what comes out.
  Values<std::uint32_t> order_in_, order_, sorted_rows_, starts_in_, starts_;
  Memory scratch_;
};

/// Updates of one table, which need 4 bytes a row of the table, unless deterministic. Rows that are named
/// more than once count as one, with the sum of their gradients.
class Updater {
 public:
  Updater(const Stream& stream, std::uint32_t table_rows, bool deterministic);
  /// `room` may be others' too, on the same stream.
  Updater(const Stream& stream, std::uint32_t table_rows, std::shared_ptr<UpdateRoom> room);

  /// Throws Error: resource_exhausted, when its room was not reserved; invalid_argument for another optimizer
  /// than SGD on integers. T is float, double, float16, bfloat16, std::int32_t or std::int64_t.
  template <class T>
  void apply(const Stream& stream, const Optimizer& optimizer, const Update<T>& update);

 private:
  template <class A>
  void find_owners(const Stream& stream, const std::uint32_t* rows, std::uint32_t count, std::uint64_t width,
                   A* gradient, std::uint32_t* first_bad);
  template <class A>
  void sum_in_order(const Stream& stream, const std::uint32_t* rows, std::uint32_t count, std::uint64_t width,
                    A* gradient, std::uint32_t* first_bad);

  std::uint32_t table_rows_;
  std::shared_ptr<UpdateRoom> room_;
  Values<std::uint32_t> heads_;
};

}  // namespace capstan::gpu
