// gemm.cu -- matrix products; one block of threads per tile of the result.
#include "gpu/gemm.hpp"

#include "capstan/error.hpp"
#include "gpu/blocks.cuh"
#include "gpu/gemm_body.hpp"

namespace capstan::gpu {
namespace {

constexpr std::uint32_t kTile = GemmBody<Transposed::no, Transposed::no, AddProduct>::kTile;

/// Two blocks, of four warps each, on each of 132 multiprocessors: two warps per scheduler.
constexpr std::uint64_t kBlocks = 264;
/// Minimum range of the inner index in a part; shorter parts would cost more to add up than they gain.
constexpr std::uint32_t kMinInner = 64;

std::uint64_t tiles(std::uint32_t count) { return (std::uint64_t{count} + kTile - 1) / kTile; }

template <class Term, Transposed kA, Transposed kB>
void start(const Stream& stream, const Gemm& gemm) {
  using Body = GemmBody<kA, kB, Term>;
  const std::uint64_t blocks = tiles(gemm.rows) * tiles(gemm.columns) * gemm.parts;
  if (blocks >= std::uint64_t{1} << 31 || gemm.inner >= std::uint32_t{1} << 31) {
    throw Error(Code::invalid_argument,
                "matrix product: found 2^31 tiles or inner indices or more, expected fewer");
  }
  const std::uint32_t in_part = (gemm.inner + gemm.parts - 1) / gemm.parts;
  const Body body{gemm, static_cast<std::uint32_t>(tiles(gemm.rows)),
                  static_cast<std::uint32_t>(tiles(gemm.columns)),
                  (in_part + Body::kInner - 1) / Body::kInner * Body::kInner};
  each_block(stream, body, static_cast<std::uint32_t>(blocks));
}

template <class Term>
void start_any(const Stream& stream, const Gemm& gemm) {
  constexpr auto kNo = Transposed::no, kYes = Transposed::yes;
  const bool b = gemm.b_transposed == kYes;
  if (gemm.a_transposed == kYes) {
    return b ? start<Term, kYes, kYes>(stream, gemm) : start<Term, kYes, kNo>(stream, gemm);
  }
  b ? start<Term, kNo, kYes>(stream, gemm) : start<Term, kNo, kNo>(stream, gemm);
}

}  // namespace

std::uint32_t gemm_parts(std::uint32_t rows, std::uint32_t columns, std::uint32_t inner) noexcept {
  const std::uint64_t blocks = tiles(rows) * tiles(columns);
  const std::uint64_t wanted = blocks == 0 ? 1 : kBlocks / blocks;
  const std::uint64_t most = inner / kMinInner;
  const std::uint64_t parts = wanted < most ? wanted : most;
  return parts == 0 ? 1 : static_cast<std::uint32_t>(parts);
}

void multiply(const Stream& stream, const Gemm& gemm, GemmTerm term) {
  const DeviceGuard guard(stream);
  if (term == GemmTerm::product) return start_any<AddProduct>(stream, gemm);
  start_any<AddSquaredDifference>(stream, gemm);
}

}  // namespace capstan::gpu
