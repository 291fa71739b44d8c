// row_bodies.hpp -- bodies of kernels on the rows of a table: the work for one number, such as that of a
// pack.
//
// A body is called for every number below a count, in three steps: find determines the row, load reads it,
// store writes. Numbers run concurrently and in any order. A GPU thread runs each step for several numbers
// before the next step, so that their loads are in flight together. No two numbers of a body write to the
// same address, except by atomics. Tests call the bodies on the CPU.
//
// Numbers have 31 bits, so larger work is divided into pieces: `first` is the first row of a piece, and
// per-pack pointers point to the start of the piece.
#pragma once

#include <cstdint>

#include "gpu/both.hpp"
#include "gpu/divider.hpp"
#include "gpu/rounding.hpp"
#include "gpu/rules.hpp"

namespace capstan::gpu {

/// The unit that one thread reads or writes at once.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T v[kCount];
};

/// Initial value of first_bad, the smallest i whose row is not in the table.
inline constexpr std::uint32_t kNoBadRow = 0xFFFFFFFF;

/// Location of a pack: position i in the list of rows, pack within the row, and row of the table.
struct PackLocation {
  std::uint32_t i, pack, row;
};

/// packed[i] = table[rows[i]], one number per pack. Rows that are not in the table are read as zeros.
template <class P>
struct GatherBody {
  const P* table;
  std::uint32_t table_rows;
  Divider packs;              // per row
  const std::uint32_t* rows;  // of the piece
  P* packed;                  // of the piece
  std::uint32_t first;
  std::uint32_t* first_bad;

  CAPSTAN_BOTH PackLocation find(std::uint32_t number) const {
    const auto [i, pack] = packs(number);
    return {i, pack, rows[i]};
  }
  CAPSTAN_BOTH P load(std::uint32_t, const PackLocation& at) const {
    if (at.row < table_rows) return table[std::uint64_t{at.row} * packs.divisor() + at.pack];
    if (at.pack == 0) atomic_min(first_bad, first + at.i);
    return P{};
  }
  CAPSTAN_BOTH void store(std::uint32_t number, const PackLocation&, const P& read) const {
    packed[number] = read;
  }
};

/// packed[i] = the row at addresses[i], one number per pack.
template <class P>
struct GatherFromBody {
  const std::uint64_t* addresses;  // of the piece
  Divider packs;                   // per row
  P* packed;                       // of the piece

  CAPSTAN_BOTH const P* find(std::uint32_t number) const {
    const auto [i, pack] = packs(number);
    return reinterpret_cast<const P*>(addresses[i]) + pack;
  }
  CAPSTAN_BOTH P load(std::uint32_t, const P* from) const { return *from; }
  CAPSTAN_BOTH void store(std::uint32_t number, const P*, const P& read) const { packed[number] = read; }
};

/// table[rows[i]] = packed[i]. REQUIRES: rows are unique. Rows that are not in the table are skipped.
template <class P>
struct ScatterBody {
  P* table;
  std::uint32_t table_rows;
  Divider packs;
  const std::uint32_t* rows;  // of the piece
  const P* packed;            // of the piece
  std::uint32_t first;
  std::uint32_t* first_bad;

  CAPSTAN_BOTH PackLocation find(std::uint32_t number) const {
    const auto [i, pack] = packs(number);
    return {i, pack, rows[i]};
  }
  CAPSTAN_BOTH P load(std::uint32_t number, const PackLocation&) const { return packed[number]; }
  CAPSTAN_BOTH void store(std::uint32_t, const PackLocation& at, const P& read) const {
    if (at.row < table_rows) {
      table[std::uint64_t{at.row} * packs.divisor() + at.pack] = read;
    } else if (at.pack == 0) {
      atomic_min(first_bad, first + at.i);
    }
  }
};

/// Converts a 16-bit gradient to float, one number per element.
template <class T>
struct WidenBody {
  const T* in;
  float* out;

  struct Empty {};
  CAPSTAN_BOTH Empty find(std::uint32_t) const { return {}; }
  CAPSTAN_BOTH float load(std::uint32_t number, Empty) const { return gpu::widened(in[number]); }
  CAPSTAN_BOTH void store(std::uint32_t number, Empty, float read) const { out[number] = read; }
};

/// out[i] = i
struct IotaBody {
  std::uint32_t* out;

  struct Empty {};
  CAPSTAN_BOTH Empty find(std::uint32_t) const { return {}; }
  CAPSTAN_BOTH Empty load(std::uint32_t, Empty) const { return {}; }
  CAPSTAN_BOTH void store(std::uint32_t number, Empty, Empty) const { out[number] = number; }
};

/// table[rows[i]] += factor * gradient[i], one number per pack; a row may occur several times. Rows that are
/// not in the table are skipped.
template <class P, class A>
struct AddBody {
  static constexpr int kCount = sizeof(P) / sizeof(A);
  A* values;
  std::uint32_t table_rows;
  A factor;
  Divider packs;
  const std::uint32_t* rows;  // of the piece
  const P* gradient;          // of the piece
  std::uint32_t first;
  std::uint32_t* first_bad;

  CAPSTAN_BOTH PackLocation find(std::uint32_t number) const {
    const auto [i, pack] = packs(number);
    return {i, pack, rows[i]};
  }
  CAPSTAN_BOTH P load(std::uint32_t number, const PackLocation&) const { return gradient[number]; }
  CAPSTAN_BOTH void store(std::uint32_t, const PackLocation& at, P& read) const {
    if (at.row < table_rows) {
      for (int j = 0; j < kCount; ++j) read.v[j] *= factor;
      atomic_add_each<kCount>(values + (std::uint64_t{at.row} * packs.divisor() + at.pack) * kCount, read.v);
    } else if (at.pack == 0) {
      atomic_min(first_bad, first + at.i);
    }
  }
};

// With other optimizers, a row that a push contains more than once is updated once, with the sum of its
// gradients. One of the duplicates becomes the owner of the row, and the gradients of the other duplicates
// are added to the owner's. With atomics, in any order:
//
//   ClaimBody   heads[row] = 1 + the last i with this row          one number per row of the gradient
//   FoldBody    adds the duplicates' gradients to the owner's      one number per pack
//   UpdateBody  updates the table by owners, heads[row] = 0        one number per pack
//
// Or deterministically, after sorting (row, i) by row:
//
//   StartBody   starts[at] = at at the first duplicate of a row    one number per row of the gradient,
//                                                                  then the running maximum of `starts`
//   TreeBody    sums the duplicates in a tree                      one number per pack and level
//   OwnerBody   makes the first duplicate of a row its owner       one number per row of the gradient

struct ClaimBody {
  std::uint32_t* heads;  // one per row of the table; 0 between updates
  std::uint32_t table_rows;
  const std::uint32_t* rows;
  std::uint32_t* first_bad;

  struct Empty {};
  CAPSTAN_BOTH std::uint32_t find(std::uint32_t i) const { return rows[i]; }
  CAPSTAN_BOTH Empty load(std::uint32_t, std::uint32_t) const { return {}; }
  CAPSTAN_BOTH void store(std::uint32_t i, std::uint32_t row, Empty) const {
    if (row < table_rows) {
      atomic_max(&heads[row], i + 1);
    } else {
      atomic_min(first_bad, i);
    }
  }
};

template <class P, class A>
struct FoldBody {
  static constexpr int kCount = sizeof(P) / sizeof(A);
  const std::uint32_t* heads;
  std::uint32_t table_rows;
  Divider packs;
  const std::uint32_t* rows;  // like the next two, of the complete gradient and not of the piece
  A* gradient;
  std::uint8_t* owns;
  std::uint32_t first;

  struct Read {
    P pack;
    std::uint32_t owner;  // kNoBadRow: none
  };
  CAPSTAN_BOTH PackLocation find(std::uint32_t number) const {
    const auto [in_piece, pack] = packs(number);
    return {first + in_piece, pack, rows[first + in_piece]};
  }
  CAPSTAN_BOTH Read load(std::uint32_t, const PackLocation& at) const {
    Read read;
    read.owner = at.row < table_rows ? heads[at.row] - 1 : kNoBadRow;
    if (adds(at, read)) {
      read.pack = reinterpret_cast<const P*>(gradient)[std::uint64_t{at.i} * packs.divisor() + at.pack];
    }
    return read;
  }
  CAPSTAN_BOTH void store(std::uint32_t, const PackLocation& at, const Read& read) const {
    if (at.pack == 0) owns[at.i] = read.owner == at.i;
    if (!adds(at, read)) return;
    A* to = gradient + (std::uint64_t{read.owner} * packs.divisor() + at.pack) * kCount;
    atomic_add_each<kCount>(to, read.pack.v);
  }
  CAPSTAN_BOTH static bool adds(const PackLocation& at, const Read& read) {
    return read.owner != at.i && read.owner != kNoBadRow;
  }
};

struct StartBody {
  const std::uint32_t* sorted_rows;
  std::uint32_t* starts;

  CAPSTAN_BOTH std::uint32_t find(std::uint32_t at) const { return sorted_rows[at]; }
  CAPSTAN_BOTH std::uint32_t load(std::uint32_t at, std::uint32_t row) const {
    return at == 0 || row != sorted_rows[at - 1] ? at : 0;
  }
  CAPSTAN_BOTH void store(std::uint32_t at, std::uint32_t, std::uint32_t start) const { starts[at] = start; }
};

/// One level of the tree: adds every second sum of `stride` gradients to the sum before it.
template <class P, class A>
struct TreeBody {
  static constexpr int kCount = sizeof(P) / sizeof(A);
  const std::uint32_t* starts;
  const std::uint32_t* order;  // i, by position in the sorted order
  std::uint32_t count;
  std::uint32_t stride;  // 1, 2, 4, ...
  Divider packs;
  A* gradient;
  std::uint32_t first;

  struct Pair {
    std::uint64_t to, from;  // packs
    bool adds;
  };
  CAPSTAN_BOTH Pair find(std::uint32_t number) const {
    const auto [in_piece, pack] = packs(number);
    const std::uint32_t at = first + in_piece;
    const std::uint32_t start = starts[at];
    const bool is_left = ((at - start) & (2 * stride - 1)) == 0;
    if (!is_left || count - at <= stride || starts[at + stride] != start) return {0, 0, false};
    return {std::uint64_t{order[at]} * packs.divisor() + pack,
            std::uint64_t{order[at + stride]} * packs.divisor() + pack, true};
  }
  CAPSTAN_BOTH P load(std::uint32_t, const Pair& pair) const {
    P sum{};
    if (!pair.adds) return sum;
    const P* all = reinterpret_cast<const P*>(gradient);
    const P left = all[pair.to];
    const P right = all[pair.from];
    for (int j = 0; j < kCount; ++j) sum.v[j] = sum_of(left.v[j], right.v[j]);
    return sum;
  }
  CAPSTAN_BOTH void store(std::uint32_t, const Pair& pair, const P& sum) const {
    if (pair.adds) reinterpret_cast<P*>(gradient)[pair.to] = sum;
  }
};

struct OwnerBody {
  const std::uint32_t* sorted_rows;
  const std::uint32_t* starts;
  const std::uint32_t* order;
  std::uint32_t table_rows;
  std::uint8_t* owns;
  std::uint32_t* first_bad;

  CAPSTAN_BOTH std::uint32_t find(std::uint32_t at) const { return order[at]; }
  CAPSTAN_BOTH bool load(std::uint32_t at, std::uint32_t) const { return sorted_rows[at] < table_rows; }
  CAPSTAN_BOTH void store(std::uint32_t at, std::uint32_t i, bool is_there) const {
    owns[i] = is_there && starts[at] == at;
    if (!is_there) atomic_min(first_bad, i);
  }
};

/// Applies an optimizer's rule to the rows that the gradient's rows own or, if dense, to `first_row` and the
/// rows after it. T: element of the table; W, G: packs of values and of the arithmetic type, with equally
/// many elements.
template <class T, class W, class G, class Rule>
struct UpdateBody {
  using A = Arithmetic<T>;
  static constexpr int kCount = sizeof(W) / sizeof(T);
  Rule rule;
  W* values;
  G* slot0;
  G* slot1;
  Divider packs;
  const std::uint32_t* rows;  // of the piece; null if dense
  const std::uint8_t* owns;   // of the piece; null if every row of the gradient is an owner
  std::uint32_t* heads;       // null if there are none to clear
  std::uint32_t first_row;    // of the piece
  const G* gradient;          // of the piece
  Rounding rounding;

  struct Target {
    std::uint64_t at;   // index of a pack of the table
    std::uint32_t row;  // row whose head is cleared; kNoBadRow if none
    bool updates;
  };
  struct Read {
    G gradient, a, b;
    W value;
  };

  CAPSTAN_BOTH Target find(std::uint32_t number) const {
    const auto [i, pack] = packs(number);
    if (owns != nullptr && owns[i] == 0) return {0, kNoBadRow, false};
    const std::uint32_t row = rows == nullptr ? first_row + i : rows[i];
    const bool clears = heads != nullptr && pack == 0;
    return {std::uint64_t{row} * packs.divisor() + pack, clears ? row : kNoBadRow, true};
  }
  CAPSTAN_BOTH Read load(std::uint32_t number, const Target& target) const {
    Read read{};
    if (!target.updates) return read;
    read.gradient = gradient[number];
    read.value = values[target.at];
    if constexpr (Rule::kSlots > 0) read.a = slot0[target.at];
    if constexpr (Rule::kSlots > 1) read.b = slot1[target.at];
    return read;
  }
  CAPSTAN_BOTH void store(std::uint32_t, const Target& target, Read& read) const {
    if (!target.updates) return;
    for (int j = 0; j < kCount; ++j) {
      A value = gpu::widened(read.value.v[j]);
      rule(Scalar(), read.gradient.v[j], value, read.a.v[j], read.b.v[j]);
      read.value.v[j] = narrowed<T>(value, rounding, target.at * kCount + static_cast<std::uint64_t>(j));
    }
    values[target.at] = read.value;
    if constexpr (Rule::kSlots > 0) slot0[target.at] = read.a;
    if constexpr (Rule::kSlots > 1) slot1[target.at] = read.b;
    if (target.row != kNoBadRow) heads[target.row] = 0;
  }
};

}  // namespace capstan::gpu
