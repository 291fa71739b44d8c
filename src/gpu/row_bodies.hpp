// row_bodies.hpp -- what one thread of a GPU does with rows of a table, by its number.
//
// A body is called for every number below a count, in three steps: find reads which row it is about, load
// reads that, store writes. Other numbers go on at the same time, in any order, and a GPU takes each step for
// several numbers of a thread before it takes the next one, so that their reads are in flight together. No
// two numbers of one body write to the same place, but by atomics. Tests call the bodies on the CPU.
//
// Numbers have 31 bits. Of more packs than that, `first` is the row at which a piece begins, and pointers to
// what is counted by the pack point at the piece.
#pragma once

#include <cstdint>

#include "gpu/both.hpp"
#include "gpu/divider.hpp"
#include "gpu/rounding.hpp"
#include "gpu/rules.hpp"

namespace capstan::gpu {

/// What one thread reads or writes at once.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T v[kCount];
};

/// Where the smallest i with a row that is not in the table is noted.
inline constexpr std::uint32_t kNoBadRow = 0xFFFFFFFF;

/// Of one number: a place in what is named, a pack of it, and the row of the table.
struct Place {
  std::uint32_t i, pack, row;
};

/// outside[i] = table[rows[i]]. One number a pack; rows that are not in the table are zeros.
template <class P>
struct GatherBody {
  const P* table;
  std::uint32_t table_rows;
  Divider packs;              // a row
  const std::uint32_t* rows;  // of the piece
  P* outside;                 // of the piece
  std::uint32_t first;
  std::uint32_t* first_bad;

  CAPSTAN_BOTH Place find(std::uint32_t number) const {
    const auto [i, pack] = packs(number);
    return {i, pack, rows[i]};
  }
  CAPSTAN_BOTH P load(std::uint32_t, const Place& place) const {
    if (place.row < table_rows) return table[std::uint64_t{place.row} * packs.divisor() + place.pack];
    if (place.pack == 0) atomic_min(first_bad, first + place.i);
    return P{};
  }
  CAPSTAN_BOTH void store(std::uint32_t number, const Place&, const P& read) const { outside[number] = read; }
};

/// outside[i] = the row at addresses[i]. One number a pack.
template <class P>
struct GatherFromBody {
  const std::uint64_t* addresses;  // of the piece
  Divider packs;                   // a row
  P* outside;                      // of the piece

  CAPSTAN_BOTH const P* find(std::uint32_t number) const {
    const auto [i, pack] = packs(number);
    return reinterpret_cast<const P*>(addresses[i]) + pack;
  }
  CAPSTAN_BOTH P load(std::uint32_t, const P* place) const { return *place; }
  CAPSTAN_BOTH void store(std::uint32_t number, const P*, const P& read) const { outside[number] = read; }
};

/// table[rows[i]] = outside[i]. REQUIRES: no row twice. Rows that are not in the table are left out.
template <class P>
struct ScatterBody {
  P* table;
  std::uint32_t table_rows;
  Divider packs;
  const std::uint32_t* rows;  // of the piece
  const P* outside;           // of the piece
  std::uint32_t first;
  std::uint32_t* first_bad;

  CAPSTAN_BOTH Place find(std::uint32_t number) const {
    const auto [i, pack] = packs(number);
    return {i, pack, rows[i]};
  }
  CAPSTAN_BOTH P load(std::uint32_t number, const Place&) const { return outside[number]; }
  CAPSTAN_BOTH void store(std::uint32_t, const Place& place, const P& read) const {
    if (place.row < table_rows) {
      table[std::uint64_t{place.row} * packs.divisor() + place.pack] = read;
    } else if (place.pack == 0) {
      atomic_min(first_bad, first + place.i);
    }
  }
};

/// A gradient of 16-bit numbers in float. One number an element.
template <class T>
struct WidenBody {
  const T* in;
  float* out;

  struct Nothing {};
  CAPSTAN_BOTH Nothing find(std::uint32_t) const { return {}; }
  CAPSTAN_BOTH float load(std::uint32_t number, Nothing) const { return gpu::widened(in[number]); }
  CAPSTAN_BOTH void store(std::uint32_t number, Nothing, float read) const { out[number] = read; }
};

/// 0, 1, 2, ...
struct CountBody {
  std::uint32_t* out;

  struct Nothing {};
  CAPSTAN_BOTH Nothing find(std::uint32_t) const { return {}; }
  CAPSTAN_BOTH Nothing load(std::uint32_t, Nothing) const { return {}; }
  CAPSTAN_BOTH void store(std::uint32_t number, Nothing, Nothing) const { out[number] = number; }
};

// Rows that a push names more than once count as one, with the sum of their gradients: of all i with the same
// row one becomes the owner of the row, and takes the others' gradients on. In any order, by atomics:
//
//   ClaimBody   heads[row] = 1 + the last i that names it    one number a row of the gradient
//   FoldBody    the others add theirs to the owner's         one number a pack
//   UpdateBody  owners update the table, heads[row] = 0      one number a pack
//
// or so that every run gives the same bits, after (row, i) have been sorted by row:
//
//   StartBody   starts[at] = at where a row's own begin      one number a row of the gradient, then the
//                                                            running maximum of `starts`
//   TreeBody    a tree of sums, once for each level          one number a pack
//   OwnBody     the first of each row is its owner           one number a row of the gradient

struct ClaimBody {
  std::uint32_t* heads;  // one for each row of the table, 0 between two updates
  std::uint32_t table_rows;
  const std::uint32_t* rows;
  std::uint32_t* first_bad;

  struct Nothing {};
  CAPSTAN_BOTH std::uint32_t find(std::uint32_t i) const { return rows[i]; }
  CAPSTAN_BOTH Nothing load(std::uint32_t, std::uint32_t) const { return {}; }
  CAPSTAN_BOTH void store(std::uint32_t i, std::uint32_t row, Nothing) const {
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
  const std::uint32_t* rows;  // all, as are the next two
  A* gradient;
  std::uint8_t* owns;
  std::uint32_t first;

  struct Read {
    P pack;
    std::uint32_t owner;  // kNoBadRow: none
  };
  CAPSTAN_BOTH Place find(std::uint32_t number) const {
    const auto [in_piece, pack] = packs(number);
    return {first + in_piece, pack, rows[first + in_piece]};
  }
  CAPSTAN_BOTH Read load(std::uint32_t, const Place& place) const {
    Read read;
    read.owner = place.row < table_rows ? heads[place.row] - 1 : kNoBadRow;
    if (adds(place, read)) {
      read.pack = reinterpret_cast<const P*>(gradient)[std::uint64_t{place.i} * packs.divisor() + place.pack];
    }
    return read;
  }
  CAPSTAN_BOTH void store(std::uint32_t, const Place& place, const Read& read) const {
    if (place.pack == 0) owns[place.i] = read.owner == place.i;
    if (!adds(place, read)) return;
    A* to = gradient + (std::uint64_t{read.owner} * packs.divisor() + place.pack) * kCount;
    for (int j = 0; j < kCount; ++j) atomic_add(to + j, read.pack.v[j]);
  }
  CAPSTAN_BOTH static bool adds(const Place& place, const Read& read) {
    return read.owner != place.i && read.owner != kNoBadRow;
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

/// One level: every second of the sums of `stride` gradients is added to the one before it.
template <class P, class A>
struct TreeBody {
  static constexpr int kCount = sizeof(P) / sizeof(A);
  const std::uint32_t* starts;
  const std::uint32_t* order;  // i by place in the sorted order
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

struct OwnBody {
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

/// An optimizer's rule on the rows that the gradient's rows own, or on `first_row` and the next ones.
/// T: of the table; W, G: packs of values, and of what is computed with, of as many elements.
template <class T, class W, class G, class Rule>
struct UpdateBody {
  using A = Arithmetic<T>;
  static constexpr int kCount = sizeof(W) / sizeof(T);
  Rule rule;
  W* values;
  G* slot0;
  G* slot1;
  Divider packs;
  const std::uint32_t* rows;  // of the piece; null: dense
  const std::uint8_t* owns;   // of the piece; null: every one
  std::uint32_t* heads;       // null: none to be cleared
  std::uint32_t first_row;    // of the piece
  const G* gradient;          // of the piece
  Rounding rounding;

  struct Target {
    std::uint64_t at;   // a pack of the table
    std::uint32_t row;  // whose head it clears; kNoBadRow: none
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
