// row_copy.cu -- gather and scatter, in the widest packs that the row size and alignment allow.
#include "gpu/each.cuh"
#include "gpu/pieces.hpp"
#include "gpu/row_bodies.hpp"
#include "gpu/row_ops.hpp"

namespace capstan::gpu {
namespace {

/// Loads in flight per thread.
constexpr int kTogether = 4;

/// Calls f(pack) with the widest pack whose size divides all numbers that were or-ed into `bits`.
template <class F>
void with_pack(std::uint64_t bits, const F& f) {
  if (bits % 16 == 0) return f(Pack<std::uint32_t, 4>{});
  if (bits % 8 == 0) return f(Pack<std::uint32_t, 2>{});
  if (bits % 4 == 0) return f(Pack<std::uint32_t, 1>{});
  if (bits % 2 == 0) return f(Pack<std::uint16_t, 1>{});
  f(Pack<std::uint8_t, 1>{});
}

/// Calls f(pack) with the widest pack that fits the rows and both buffers.
template <class F>
void with_pack(const RowCopy& copy, const F& f) {
  const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(copy.table) |
                                               reinterpret_cast<std::uintptr_t>(copy.packed)) |
                    copy.row_bytes;
  with_pack(bits, f);
}

}  // namespace

void gather(const Stream& stream, const RowCopy& copy) {
  const DeviceGuard guard(stream);
  with_pack(copy, [&]<class P>(P) {
    const std::uint64_t packs = copy.row_bytes / sizeof(P);
    in_pieces(copy.count, packs, [&](std::uint32_t first, std::uint32_t rows) {
      const GatherBody<P> body{reinterpret_cast<const P*>(copy.table),
                               copy.table_rows,
                               Divider(static_cast<std::uint32_t>(packs)),
                               copy.rows + first,
                               reinterpret_cast<P*>(copy.packed) + first * packs,
                               first,
                               copy.first_bad};
      each<kTogether>(stream, body, static_cast<std::uint32_t>(rows * packs));
    });
  });
}

void gather(const Stream& stream, const RowsAt& rows) {
  const DeviceGuard guard(stream);
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
  const DeviceGuard guard(stream);
  with_pack(copy, [&]<class P>(P) {
    const std::uint64_t packs = copy.row_bytes / sizeof(P);
    in_pieces(copy.count, packs, [&](std::uint32_t first, std::uint32_t rows) {
      const ScatterBody<P> body{reinterpret_cast<P*>(copy.table),
                                copy.table_rows,
                                Divider(static_cast<std::uint32_t>(packs)),
                                copy.rows + first,
                                reinterpret_cast<const P*>(copy.packed) + first * packs,
                                first,
                                copy.first_bad};
      each<kTogether>(stream, body, static_cast<std::uint32_t>(rows * packs));
    });
  });
}

}  // namespace capstan::gpu
