// row_copy.cu -- gather and scatter: bytes, in the widest packs that the rows are made of.
#include "gpu/each.cuh"
#include "gpu/pieces.hpp"
#include "gpu/row_bodies.hpp"
#include "gpu/row_ops.hpp"

namespace capstan::gpu {
namespace {

/// Loads of a thread in flight.
constexpr int kTogether = 4;

/// f(pack) with the widest pack of which all that `misfit` is made of, by "or", are multiples.
template <class F>
void with_pack(std::uint64_t misfit, const F& f) {
  if (misfit % 16 == 0) return f(Pack<std::uint32_t, 4>{});
  if (misfit % 8 == 0) return f(Pack<std::uint32_t, 2>{});
  if (misfit % 4 == 0) return f(Pack<std::uint32_t, 1>{});
  if (misfit % 2 == 0) return f(Pack<std::uint16_t, 1>{});
  f(Pack<std::uint8_t, 1>{});
}

/// With the widest pack of which rows and both memories are made.
template <class F>
void with_pack(const RowCopy& copy, const F& f) {
  const auto misfit = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(copy.table) |
                                                 reinterpret_cast<std::uintptr_t>(copy.outside)) |
                      copy.row_bytes;
  with_pack(misfit, f);
}

}  // namespace

void gather(const Stream& stream, const RowCopy& copy) {
  const On on(stream);
  with_pack(copy, [&]<class P>(P) {
    const std::uint64_t packs = copy.row_bytes / sizeof(P);
    in_pieces(copy.count, packs, [&](std::uint32_t first, std::uint32_t rows) {
      const GatherBody<P> body{reinterpret_cast<const P*>(copy.table),
                               copy.table_rows,
                               Divider(static_cast<std::uint32_t>(packs)),
                               copy.rows + first,
                               reinterpret_cast<P*>(copy.outside) + first * packs,
                               first,
                               copy.first_bad};
      each<kTogether>(stream, body, static_cast<std::uint32_t>(rows * packs));
    });
  });
}

void gather(const Stream& stream, const RowsAt& rows) {
  const On on(stream);
  with_pack(rows.multiple | reinterpret_cast<std::uintptr_t>(rows.out), [&]<class P>(P) {
    const std::uint64_t packs = rows.row_bytes / sizeof(P);
    in_pieces(rows.count, packs, [&](std::uint32_t first, std::uint32_t count) {
      const GatherFromBody<P> body{rows.addresses + first, Divider(static_cast<std::uint32_t>(packs)),
                                   reinterpret_cast<P*>(rows.out) + first * packs};
      each<kTogether>(stream, body, static_cast<std::uint32_t>(count * packs));
    });
  });
}

void scatter(const Stream& stream, const RowCopy& copy) {
  const On on(stream);
  with_pack(copy, [&]<class P>(P) {
    const std::uint64_t packs = copy.row_bytes / sizeof(P);
    in_pieces(copy.count, packs, [&](std::uint32_t first, std::uint32_t rows) {
      const ScatterBody<P> body{reinterpret_cast<P*>(copy.table),
                                copy.table_rows,
                                Divider(static_cast<std::uint32_t>(packs)),
                                copy.rows + first,
                                reinterpret_cast<const P*>(copy.outside) + first * packs,
                                first,
                                copy.first_bad};
      each<kTogether>(stream, body, static_cast<std::uint32_t>(rows * packs));
    });
  });
}

}  // namespace capstan::gpu
