// row_ops.hpp -- reads, writes and updates rows of a table in GPU memory.
//
// All pointers are to memory of the stream's GPU. The calls return once the work is enqueued on the stream.
// Rows are indices within the table; invalid ones are skipped and reported through first_bad.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/with_type.hpp"
#include "capstan/optimizers.hpp"
#include "gpu/gpu.hpp"
#include "gpu/rounding.hpp"

namespace capstan::gpu {

/// Rows of a table, and a packed buffer with one row for each of them.
struct RowCopy {
  std::byte* table = nullptr;
  std::uint32_t table_rows = 0;
  std::uint64_t row_bytes = 0;
  const std::uint32_t* rows = nullptr;
  std::uint32_t count = 0;  // number of `rows`
  std::byte* packed = nullptr;
  /// Lowered to the smallest i for which rows[i] is not in the table. REQUIRES: the caller has initialized it
  /// to kNoBadRow.
  std::uint32_t* first_bad = nullptr;
};
/// packed[i] = table[rows[i]]; zeros for rows that are not in the table.
void gather(const Stream& stream, const RowCopy& copy);
/// table[rows[i]] = packed[i]. REQUIRES: rows are unique.
void scatter(const Stream& stream, const RowCopy& copy);

/// Rows at arbitrary addresses.
struct RowsAt {
  const std::uint64_t* addresses = nullptr;  // accessible to the stream's GPU
  std::uint32_t count = 0;                   // number of addresses
  std::uint64_t row_bytes = 0;
  std::uint64_t multiple = 1;  // power of two that divides all addresses and row_bytes
  std::byte* out = nullptr;
};
/// out[i] = the row at addresses[i].
void gather(const Stream& stream, const RowsAt& rows);

/// One push to one shard, as ps::Update on the CPU. REQUIRES: each pointer is aligned as an allocation is, or
/// lies a whole number of rows behind such an address.
template <class T>
struct Update {
  T* values = nullptr;
  Arithmetic<T>* slot0 = nullptr;
  Arithmetic<T>* slot1 = nullptr;
  std::uint64_t width = 0;
  std::uint32_t table_rows = 0;
  const std::uint32_t* rows = nullptr;  // null: first_row and the rows after it
  std::uint32_t first_row = 0;
  std::uint32_t count = 0;
  T* gradient = nullptr;               // modified if a row occurs more than once
  std::int64_t step = 1;               // t of Adam and AdamW
  Rounding rounding;                   // for 16-bit tables
  std::uint32_t* first_bad = nullptr;  // as in RowCopy; unused if `rows` is null
};

/// Scratch memory of updates: 1 byte per row of the gradient (21 if deterministic), and for 16-bit tables the
/// gradient in float. Used by one stream and one thread at a time.
class UpdateScratch {
 public:
  /// With `deterministic`, sums have a fixed order, which needs a sort.
  explicit UpdateScratch(bool deterministic) : deterministic_(deterministic) {}

  bool deterministic() const noexcept { return deterministic_; }
  /// Reserves memory for gradients of up to `rows` rows and `narrow_elements` 16-bit elements. Throws
  /// Error(resource_exhausted) and keeps the previous memory then.
  void reserve(const Stream& stream, std::uint32_t rows, std::uint64_t narrow_elements);

 private:
  friend class Updater;

  bool deterministic_;
  Values<std::uint8_t> owns_;
  Values<float> widened_;
  // Inputs and outputs of the sort.
  Values<std::uint32_t> order_in_, order_, sorted_rows_, starts_in_, starts_;
  Memory scratch_;
};

/// Updates one table. Needs 4 bytes per row of the table, unless deterministic. A row that occurs more than
/// once in a push is updated once, with the sum of its gradients.
class Updater {
 public:
  Updater(const Stream& stream, std::uint32_t table_rows, bool deterministic);
  /// `scratch` may be shared with other tables on the same stream.
  Updater(const Stream& stream, std::uint32_t table_rows, std::shared_ptr<UpdateScratch> scratch);

  /// Throws Error: resource_exhausted if the scratch memory was not reserved; invalid_argument for an
  /// optimizer other than SGD on integers. T is float, double, float16, bfloat16, std::int32_t or
  /// std::int64_t.
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
  std::shared_ptr<UpdateScratch> scratch_;
  Values<std::uint32_t> heads_;
};

}  // namespace capstan::gpu
