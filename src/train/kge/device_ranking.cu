// device_ranking.cu -- kernels of device_ranking.hpp. For each block of queries and entities: a matrix
// product, which does nearly all of the arithmetic, and two kernels; three more kernels per slice.
#include "train/kge/device_ranking.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "capstan/error.hpp"
#include "gpu/blocks.cuh"
#include "gpu/each.cuh"
#include "gpu/gemm.hpp"
#include "train/kge/device_models.hpp"
#include "train/kge/device_ranking_bodies.hpp"

namespace capstan::kge {
namespace {

using gpu::each;
using gpu::each_block;

constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 31;

/// Number of queries in a block, if the slice has so many. Queries of a block share one read of each row of
/// the table.
constexpr std::size_t kQueryBlock = 512;

}  // namespace

void DeviceRanker::compute_norms() {
  CAPSTAN_ASSERT(has_table());
  const gpu::DeviceGuard guard(stream_);
  RankMemory memory{};
  memory.dim = dim_;
  memory.entities = table_.data();
  memory.squares = squares_.data();
  memory.largest_square = largest_square_.data();
  gpu::fill_with_zeros(stream_, largest_square_.data(), sizeof(std::uint32_t));
  each_block(stream_, SquareBody{memory}, static_cast<std::uint32_t>(options_.entities));
}

/// Allocates the buffers and enqueues the copies of the plan.
RankMemory DeviceRanker::reserve_buffers(const float* relation_rows) {
  const std::size_t queries = words_.size() / 3;
  if (std::max(queries * dim_, known_.size()) >= kMaxElements) {
    throw Error(
        Code::invalid_argument,
        "the slice is too large for the GPU kernels, expected fewer than 2^31 floats and known answers");
  }
  const int device = stream_.device();
  gpu::grow(device_words_, device, words_.size());
  gpu::grow(device_known_, device, known_.size());
  gpu::grow(query_rows_, device, queries * dim_);
  gpu::grow(thresholds_, device, queries);
  gpu::grow(device_counts_, device, queries);
  counts_.resize(queries);
  gpu::copy(stream_, device_words_.data(), words_.data(), words_.size() * sizeof(std::uint32_t));
  gpu::copy(stream_, device_known_.data(), known_.data(), known_.size() * sizeof(KnownAnswer));
  RankMemory memory{};
  memory.dim = dim_;
  memory.part_size = options_.model == ModelKind::complex ? dim_ / 2 : dim_;
  memory.entities = table_.data();
  memory.squares = squares_.data();
  memory.largest_square = largest_square_.data();
  memory.relations = relation_rows;
  memory.query_entities = device_words_.data();
  memory.query_relations = memory.query_entities + queries;
  memory.answers = memory.query_relations + queries;
  memory.queries = query_rows_.data();
  memory.thresholds = thresholds_.data();
  memory.counts = device_counts_.data();
  return memory;
}

void DeviceRanker::score_blocks(const RankMemory& given) {
  const std::size_t queries = counts_.size(), entities = static_cast<std::size_t>(options_.entities);
  const std::size_t min_rows = std::min({queries, kQueryBlock, score_capacity_});
  const std::size_t columns = std::min(entities, score_capacity_ / min_rows);
  const std::size_t rows = std::min(queries, score_capacity_ / columns);
  gpu::grow(scores_, stream_.device(), rows * columns);
  RankMemory memory = given;
  memory.scores = scores_.data();
  for (std::size_t query = 0; query < queries; query += rows) {
    const auto count = static_cast<std::uint32_t>(std::min(rows, queries - query));
    const auto first_query = static_cast<std::uint32_t>(query);
    const std::uint32_t known = known_begins_[query];
    const std::uint32_t known_count = known_begins_[query + count] - known;
    for (std::size_t entity = 0; entity < entities; entity += columns) {
      const auto first_entity = static_cast<std::uint32_t>(entity);
      const auto width = static_cast<std::uint32_t>(std::min(columns, entities - entity));
      gpu::multiply(stream_, {.rows = count,
                              .columns = width,
                              .inner = dim_,
                              .a = memory.queries + query * dim_,
                              .a_stride = dim_,
                              .b = memory.entities + entity * dim_,
                              .b_stride = dim_,
                              .b_transposed = gpu::Transposed::yes,
                              .out = memory.scores,
                              .out_stride = width});
      each<2>(stream_,
              MaskAnswerBody{device_known_.data() + known, first_query, first_entity, width, memory.scores},
              known_count);
      with_model(options_.model, [&](auto model) {
        each_block(stream_, CountBody<decltype(model)::kKind>{memory, first_query, first_entity, width},
                   count);
      });
    }
  }
}

Metrics DeviceRanker::rank(const float* relation_rows) {
  CAPSTAN_ASSERT(has_table() && !words_.empty());
  const gpu::DeviceGuard guard(stream_);
  const RankMemory memory = reserve_buffers(relation_rows);
  const auto queries = static_cast<std::uint32_t>(counts_.size());
  with_unit(options_.model, memory.part_size, [&](auto model, auto width, Divider units) {
    constexpr ModelKind kModel = decltype(model)::kKind;
    constexpr int kWidth = decltype(width)::kWidth;
    each<2>(stream_, RankQueryBody<kModel, kWidth>{memory, units}, queries * units.divisor());
    each<1>(stream_, ThresholdBody<kModel>{memory}, queries);
  });
  score_blocks(memory);
  gpu::copy(stream_, counts_.data(), memory.counts, queries * sizeof(RankCounts));
  stream_.wait();
  Metrics metrics;
  metrics.add_ranks(ranks());
  return metrics;
}

}  // namespace capstan::kge
