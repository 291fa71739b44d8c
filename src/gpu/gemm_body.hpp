// gemm_body.hpp -- computes a tile of a matrix product with a block of threads (blocks.cuh).
#pragma once

#include <cstdint>

#include "gpu/both.hpp"
#include "gpu/gemm.hpp"
#include "gpu/row_bodies.hpp"

namespace capstan::gpu {

struct AddProduct {
  CAPSTAN_BOTH static void add(float& sum, float a, float b) { sum += a * b; }
};
struct AddSquaredDifference {
  CAPSTAN_BOTH static void add(float& sum, float a, float b) { sum += (a - b) * (a - b); }
};

/// A block computes kTile x kTile elements of the result, and each thread kRows x kColumns of them in
/// registers. The next operands are loaded from memory while the current ones are multiplied.
template <Transposed kA, Transposed kB, class Term>
struct GemmBody {
  static constexpr std::uint32_t kTile = 64;
  static constexpr std::uint32_t kInner = 16;  // step of the inner index
  static constexpr std::uint32_t kRows = 8, kColumns = 4;
  static constexpr std::uint32_t kThreads = kTile / kRows * (kTile / kColumns);
  static constexpr std::uint32_t kLoads = kTile * kInner / kThreads;  // of each thread, per operand
  static constexpr std::uint32_t kPadded = kTile + 4;                 // avoids bank conflicts

  using Four = Pack<float, 4>;
  struct Shared {
    alignas(16) float a[2][kInner][kPadded];
    alignas(16) float b[2][kInner][kPadded];
  };
  struct ThreadState {
    float sum[kRows][kColumns];
    float next_a[kLoads], next_b[kLoads];
  };

  Gemm gemm;
  std::uint32_t row_tiles, column_tiles;
  std::uint32_t part_inner;  // range of the inner index, a multiple of kInner

  /// Sets `own` and `inner` to the element of the tile that a thread's i-th load fills. Adjacent threads load
  /// adjacent elements.
  template <bool kInnerTogether>
  CAPSTAN_BOTH static void place(std::uint32_t thread, std::uint32_t i, std::uint32_t& own,
                                 std::uint32_t& inner) {
    const std::uint32_t at = thread + i * kThreads;
    own = kInnerTogether ? at / kInner : at % kTile;
    inner = kInnerTogether ? at % kInner : at / kTile;
  }

  /// Loads from memory to registers; zeros beyond the matrix.
  template <bool kInnerTogether>
  CAPSTAN_BOTH static void fetch(std::uint32_t thread, const float* from, std::uint32_t stride,
                                 std::uint32_t first, std::uint32_t count, std::uint32_t inner_first,
                                 std::uint32_t inner_end, float* next) {
    CAPSTAN_UNROLL
    for (std::uint32_t i = 0; i < kLoads; ++i) {
      std::uint32_t own, inner;
      place<kInnerTogether>(thread, i, own, inner);
      own += first;
      inner += inner_first;
      const std::uint64_t at =
          kInnerTogether ? std::uint64_t{own} * stride + inner : std::uint64_t{inner} * stride + own;
      next[i] = own < count && inner < inner_end ? from[at] : 0.0F;
    }
  }
  template <bool kInnerTogether>
  CAPSTAN_BOTH static void put(std::uint32_t thread, const float* next, float (*tile)[kPadded]) {
    CAPSTAN_UNROLL
    for (std::uint32_t i = 0; i < kLoads; ++i) {
      std::uint32_t own, inner;
      place<kInnerTogether>(thread, i, own, inner);
      tile[inner][own] = next[i];
    }
  }
  CAPSTAN_BOTH static void add_tile(std::uint32_t thread, ThreadState& state, const Shared& shared,
                                    std::uint32_t at) {
    const std::uint32_t row = thread / (kTile / kColumns) * kRows;
    const std::uint32_t column = thread % (kTile / kColumns) * kColumns;
    CAPSTAN_UNROLL
    for (std::uint32_t k = 0; k < kInner; ++k) {
      const Four a0 = *reinterpret_cast<const Four*>(&shared.a[at][k][row]);
      const Four a1 = *reinterpret_cast<const Four*>(&shared.a[at][k][row + 4]);
      const Four b = *reinterpret_cast<const Four*>(&shared.b[at][k][column]);
      CAPSTAN_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i) {
        CAPSTAN_UNROLL
        for (std::uint32_t j = 0; j < kColumns; ++j) {
          Term::add(state.sum[i][j], a0.v[i], b.v[j]);
          Term::add(state.sum[i + 4][j], a1.v[i], b.v[j]);
        }
      }
    }
  }

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t number) const {
    constexpr bool kInnerTogetherA = kA == Transposed::no, kInnerTogetherB = kB == Transposed::yes;
    const std::uint32_t column_first = number % column_tiles * kTile;
    const std::uint32_t row_first = number / column_tiles % row_tiles * kTile;
    const std::uint32_t part = number / column_tiles / row_tiles;
    const std::uint32_t begin = part * part_inner < gemm.inner ? part * part_inner : gemm.inner;
    const std::uint32_t end = gemm.inner - begin < part_inner ? gemm.inner : begin + part_inner;

    const auto fetch_both = [&](std::uint32_t thread, ThreadState& state, std::uint32_t from) {
      fetch<kInnerTogetherA>(thread, gemm.a, gemm.a_stride, row_first, gemm.rows, from, end, state.next_a);
      fetch<kInnerTogetherB>(thread, gemm.b, gemm.b_stride, column_first, gemm.columns, from, end,
                             state.next_b);
    };
    const auto put_both = [&](std::uint32_t thread, const ThreadState& state, Shared& shared,
                              std::uint32_t at) {
      put<kInnerTogetherA>(thread, state.next_a, shared.a[at]);
      put<kInnerTogetherB>(thread, state.next_b, shared.b[at]);
    };
    block.each([&](std::uint32_t thread, ThreadState& state, Shared& shared) {
      CAPSTAN_UNROLL
      for (std::uint32_t i = 0; i < kRows; ++i) {
        CAPSTAN_UNROLL
        for (std::uint32_t j = 0; j < kColumns; ++j) state.sum[i][j] = 0;
      }
      fetch_both(thread, state, begin);
      put_both(thread, state, shared, 0);
    });
    std::uint32_t at = 0;
    for (std::uint32_t from = begin; from < end; from += kInner, at ^= 1U) {
      const bool is_last = end - from <= kInner;
      block.each([&](std::uint32_t thread, ThreadState& state, Shared& shared) {
        if (!is_last) fetch_both(thread, state, from + kInner);
        add_tile(thread, state, shared, at);
        if (!is_last) put_both(thread, state, shared, at ^ 1U);
      });
    }
    float* const out = gemm.out + std::uint64_t{part} * gemm.part_apart;
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      const std::uint32_t row = row_first + thread / (kTile / kColumns) * kRows;
      const std::uint32_t column = column_first + thread % (kTile / kColumns) * kColumns;
      CAPSTAN_UNROLL
      for (std::uint32_t i = 0; i < kRows; ++i) {
        if (row + i >= gemm.rows) continue;
        store(out + std::uint64_t{row + i} * gemm.out_stride + column, state.sum[i],
              column < gemm.columns ? gemm.columns - column : 0);
      }
    });
  }

  CAPSTAN_BOTH void store(float* to, const float* sum, std::uint32_t columns) const {
    CAPSTAN_UNROLL
    for (std::uint32_t j = 0; j < kColumns; ++j) {
      if (j < columns) to[j] = gemm.adds ? to[j] + sum[j] : sum[j];
    }
  }
};

}  // namespace capstan::gpu
