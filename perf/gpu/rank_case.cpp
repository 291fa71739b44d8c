// rank_case.cpp -- see rank_case.hpp.
#include "perf/gpu/rank_case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/gemm.hpp"

namespace capstan::perf {
namespace {

constexpr std::int64_t kRelations = 11;

int dim_of(kge::ModelKind model) { return gpu::are_stand_ins() ? 32 : kge::defaults_of(model).dim; }
std::int64_t entities() { return gpu::are_stand_ins() ? 500 : 40943; }
std::size_t triples() { return gpu::are_stand_ins() ? 32 : 1024; }

}  // namespace

RankCase::RankCase(const gpu::Stream& stream, kge::ModelKind model)
    : stream_(stream),
      tables_(model, dim_of(model), entities(), kRelations),
      known_(kge::random_triples(4 * triples(), entities(), kRelations, 1)),
      test_(known_.begin(), known_.begin() + static_cast<std::ptrdiff_t>(triples())),
      answers_(known_, kRelations),
      ranker_({model, dim_of(model), entities(), kRelations}, answers_, stream),
      table_(ranker_.make_table()),
      relations_(stream.device(), tables_.relations.size()),
      queries_(stream.device(), 2 * triples() * tables_.dim),
      scores_(stream.device(), 2 * triples() * static_cast<std::size_t>(entities())) {
  tables_.fill_normal(2);
  gpu::copy(stream_, ranker_.make_table(), tables_.entities.data(), tables_.entities.size() * sizeof(float));
  ranker_.compute_norms();
  gpu::fill_with_zeros(stream_, queries_.data(), queries_.size() * sizeof(float));
  stream_.wait();
}

std::string RankCase::name() const {
  return fmt::format("kge ranks, {}, {} floats", kge::to_string(tables_.model), tables_.dim);
}

double RankCase::pairs() const noexcept {
  return 2 * static_cast<double>(test_.size()) * static_cast<double>(tables_.count);
}

bool RankCase::is_correct() {
  const auto ranks_of = [&](const std::vector<kge::Triple>& triples) {
    ranker_.plan(triples);
    std::vector<float> rows;
    for (const std::int64_t id : ranker_.relation_ids()) {
      const auto begin = tables_.relations.begin() + id * static_cast<std::ptrdiff_t>(tables_.dim);
      rows.insert(rows.end(), begin, begin + static_cast<std::ptrdiff_t>(tables_.dim));
    }
    gpu::copy(stream_, relations_.data(), rows.data(), rows.size() * sizeof(float));
    stream_.wait();
    rank();
    return ranker_.ranks();
  };
  const std::vector<kge::Triple> some(test_.begin(), test_.begin() + 8);
  const bool correct = ranks_of(some) == kge::plain_ranks(tables_, some, known_);
  const std::vector<double> all = ranks_of(test_);  // the slice that later calls of rank() repeat
  return correct && std::ranges::all_of(all, [&](double rank) {
           return rank >= 1 && rank <= static_cast<double>(tables_.count);
         });
}

void RankCase::multiply() {
  const auto count = static_cast<std::uint32_t>(tables_.count), dim = static_cast<std::uint32_t>(tables_.dim);
  gpu::multiply(stream_, {.rows = static_cast<std::uint32_t>(2 * test_.size()),
                          .columns = count,
                          .inner = dim,
                          .a = queries_.data(),
                          .a_stride = dim,
                          .b = table_,
                          .b_stride = dim,
                          .b_transposed = gpu::Transposed::yes,
                          .out = scores_.data(),
                          .out_stride = count});
}

}  // namespace capstan::perf
