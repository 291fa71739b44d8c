// device_step.cu -- see device_step.hpp. A batch takes nine kernels and a copy; three of the kernels, matrix
// products, do nearly all of the arithmetic.
#include "train/kge/device_step.hpp"

#include "base/assert.hpp"
#include "capstan/error.hpp"
#include "gpu/blocks.cuh"
#include "gpu/each.cuh"
#include "gpu/gemm.hpp"
#include "train/kge/device_bodies.hpp"
#include "train/kge/device_models.hpp"
#include "train/kge/device_softmax.hpp"

namespace capstan::kge {
namespace {

using gpu::each;
using gpu::each_block;
using gpu::Gemm;
using gpu::Transposed;

constexpr std::uint64_t kMaxBatchElements = std::uint64_t{1} << 31;

std::uint32_t block_of_queries(const StepMemory& memory, std::size_t max_scores) {
  const std::size_t limit = max_scores / memory.lists.negatives;
  return static_cast<std::uint32_t>(limit == 0                     ? 1
                                    : limit < memory.lists.queries ? limit
                                                                   : memory.lists.queries);
}

}  // namespace

DeviceStep::DeviceStep(const StepOptions& options, const gpu::Stream& stream, std::size_t max_scores)
    : options_(BatchPlan(options).options()),
      stream_(stream),
      max_scores_(max_scores),
      loss_(stream.device(), 1) {
  gpu::fill_with_zeros(stream_, loss_.data(), sizeof(double));
}

StepMemory DeviceStep::reserve_buffers(DevicePlan& plan, const DeviceRows& rows) {
  gpu::grow(words_, stream_.device(), plan.max_words());
  StepMemory memory{};
  memory.lists = plan.start_copy(stream_, words_.data());
  const DeviceLists& lists = memory.lists;
  memory.dim = static_cast<std::uint32_t>(options_.dim);
  memory.part_size = options_.model == ModelKind::complex ? memory.dim / 2 : memory.dim;
  memory.stride = options_.model == ModelKind::transe ? memory.dim + 4 : memory.dim;
  const std::uint64_t total_rows =
      std::uint64_t{lists.queries} + lists.negatives + lists.chunks + lists.entities + lists.relations;
  if (total_rows * memory.dim >= kMaxBatchElements) {
    throw Error(Code::invalid_argument,
                "the batch is too large for the GPU kernels, expected fewer than 2^31 floats: use a smaller "
                "--batch or fewer "
                "--negatives");
  }
  const std::uint32_t block = block_of_queries(memory, max_scores_);
  memory.query_parts = gpu::gemm_parts(block, memory.dim, lists.negatives);
  memory.negative_parts = gpu::gemm_parts(lists.negatives, memory.stride, block);

  const std::size_t queries = lists.queries, negatives = lists.negatives, dim = memory.dim;
  gpu::grow(query_rows_, stream_.device(), queries * memory.stride);
  gpu::grow(negatives_, stream_.device(), negatives * dim);
  gpu::grow(scores_, stream_.device(), block * negatives);
  gpu::grow(query_gradients_, stream_.device(), memory.query_parts * queries * dim);
  gpu::grow(negative_gradients_, stream_.device(), memory.negative_parts * negatives * memory.stride);
  gpu::grow(sums_, stream_.device(), max_chunks(2 * queries + negatives) * dim);
  gpu::grow(per_query_, stream_.device(), 3 * queries);
  memory.entities = rows.entities;
  memory.relations = rows.relations;
  memory.queries = query_rows_.data();
  memory.negatives = negatives_.data();
  memory.scores = scores_.data();
  memory.query_gradients = query_gradients_.data();
  memory.negative_gradients = negative_gradients_.data();
  memory.sums = sums_.data();
  memory.losses = per_query_.data();
  memory.positive_weights = memory.losses + queries;
  memory.weight_sums = memory.positive_weights + queries;
  memory.entity_gradients = rows.entity_gradients;
  memory.relation_gradients = rows.relation_gradients;
  return memory;
}

void DeviceStep::compute(DevicePlan& plan, const DeviceRows& rows) {
  CAPSTAN_ASSERT(plan.batch().queries() > 0);
  const gpu::DeviceGuard guard(stream_);
  const StepMemory memory = reserve_buffers(plan, rows);
  const DeviceLists& lists = memory.lists;
  with_unit(options_.model, memory.part_size, [&](auto model, auto width, const Divider& units) {
    constexpr auto kModel = decltype(model)::kKind;
    constexpr int kWidth = decltype(width)::kWidth;
    each<2>(stream_, QueryBody<kModel, kWidth>{memory, units},
            (lists.queries + lists.negatives) * units.divisor());
    compute_gradients(memory);
    each<1>(stream_, QueryGradientBody<kModel, kWidth>{memory, units}, lists.queries * units.divisor());
    each<1>(stream_, ChunkBody<kModel, kWidth>{memory, units}, lists.chunks * units.divisor());
    // The derivative of n3 * |z|^3 is slope * |z| * z. The entities of a triple count twice.
    const float slope = 3 * options_.n3;
    each<1>(stream_, GradientBody<kModel, kWidth>{memory, units, 2 * slope, slope},
            (lists.entities + lists.relations) * units.divisor());
  });
  each_block(stream_, gpu::SumBody{memory.losses, lists.queries, loss_.data()}, 1);
  queries_ += lists.queries;
}

/// Computes the weights of the candidates, and the products for the gradients of queries and negatives.
void DeviceStep::compute_gradients(const StepMemory& memory) {
  const std::uint32_t queries = memory.lists.queries, negatives = memory.lists.negatives;
  const std::uint32_t dim = memory.dim, stride = memory.stride;
  const bool is_distance = options_.model == ModelKind::transe;
  const std::uint32_t block = block_of_queries(memory, max_scores_);
  for (std::uint32_t first = 0; first < queries; first += block) {
    const std::uint32_t count = queries - first < block ? queries - first : block;
    const float* const rows = memory.queries + std::uint64_t{first} * stride;
    gpu::multiply(stream_,
                  {.rows = count,
                   .columns = negatives,
                   .inner = dim,
                   .a = rows,
                   .a_stride = stride,
                   .b = memory.negatives,
                   .b_stride = dim,
                   .b_transposed = Transposed::yes,
                   .out = memory.scores,
                   .out_stride = negatives},
                  is_distance ? gpu::GemmTerm::squared_difference : gpu::GemmTerm::product);
    with_model(options_.model, [&](auto model) {
      each_block(stream_, SoftmaxBody<decltype(model)::kKind>{memory, first, logit_correction(options_)},
                 count);
    });
    gpu::multiply(stream_, {.rows = count,
                            .columns = dim,
                            .inner = negatives,
                            .a = memory.scores,
                            .a_stride = negatives,
                            .b = memory.negatives,
                            .b_stride = dim,
                            .out = memory.query_gradients + std::uint64_t{first} * dim,
                            .out_stride = dim,
                            .parts = memory.query_parts,
                            .part_apart = std::uint64_t{queries} * dim});
    gpu::multiply(stream_, {.rows = negatives,
                            .columns = is_distance ? dim + 1 : dim,
                            .inner = count,
                            .a = memory.scores,
                            .a_stride = negatives,
                            .a_transposed = Transposed::yes,
                            .b = rows,
                            .b_stride = stride,
                            .out = memory.negative_gradients,
                            .out_stride = stride,
                            .parts = memory.negative_parts,
                            .part_apart = std::uint64_t{negatives} * stride,
                            .adds = first > 0});
  }
}

Loss DeviceStep::take_loss() {
  Loss loss{.sum = 0, .count = queries_};
  gpu::copy(stream_, &loss.sum, loss_.data(), sizeof(double));
  gpu::fill_with_zeros(stream_, loss_.data(), sizeof(double));
  stream_.wait();
  queries_ = 0;
  return loss;
}

}  // namespace capstan::kge
