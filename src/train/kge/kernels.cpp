// kernels.cpp -- see kernels.hpp. The first part is compiled once for each instruction set.
#include "train/kge/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/kge/kernels.cpp"
#include <hwy/foreach_target.h>  // must precede the two below to compile this file once per target

#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::kge::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Vectors = hn::ScalableTag<float>;
using OneLane = hn::CappedTag<float, 1>;

/// Calls body(tag, offset) for full vectors, then for single elements.
template <class Body>
HWY_INLINE void for_each_part(std::size_t size, const Body& body) {
  const Vectors vectors;
  const std::size_t lanes = hn::Lanes(vectors);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) body(vectors, i);
  for (; i < size; ++i) body(OneLane(), i);
}

/// Sum of term(tag, offset) over a row. Four accumulators hide the latency of the additions.
template <class Term>
HWY_INLINE float sum_parts(std::size_t size, const Term& term) {
  const Vectors d;
  const std::size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= size; i += 4 * lanes) {
    sum0 = hn::Add(sum0, term(d, i));
    sum1 = hn::Add(sum1, term(d, i + lanes));
    sum2 = hn::Add(sum2, term(d, i + 2 * lanes));
    sum3 = hn::Add(sum3, term(d, i + 3 * lanes));
  }
  for (; i + lanes <= size; i += lanes) sum0 = hn::Add(sum0, term(d, i));
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
  for (; i < size; ++i) sum += hn::GetLane(term(OneLane(), i));
  return sum;
}

float Dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::size_t size) {
  return sum_parts(size, [=](auto d, std::size_t i)
                             HWY_ATTR { return hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)); });
}

float SquaredDistance(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::size_t size) {
  return sum_parts(size, [=](auto d, std::size_t i) HWY_ATTR {
    const auto difference = hn::Sub(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    return hn::Mul(difference, difference);
  });
}

void AddScaled(float factor, const float* HWY_RESTRICT x, float* HWY_RESTRICT y, std::size_t size) {
  for_each_part(size, [=](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::MulAdd(hn::Set(d, factor), hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  });
}

void MakeSum(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT sum,
             std::size_t size) {
  for_each_part(size, [=](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, sum + i);
  });
}

void MakeProduct(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT product,
                 std::size_t size) {
  for_each_part(size, [=](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, product + i);
  });
}

void MakeComplexProduct(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT product,
                        std::size_t half) {
  for_each_part(half, [=](auto d, std::size_t i) HWY_ATTR {
    const auto a_re = hn::LoadU(d, a + i), a_im = hn::LoadU(d, a + half + i);
    const auto b_re = hn::LoadU(d, b + i), b_im = hn::LoadU(d, b + half + i);
    hn::StoreU(hn::NegMulAdd(a_im, b_im, hn::Mul(a_re, b_re)), d, product + i);
    hn::StoreU(hn::MulAdd(a_re, b_im, hn::Mul(a_im, b_re)), d, product + half + i);
  });
}

/// a_gradient += g * b, b_gradient += g * a
void AddProductGradients(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                         const float* HWY_RESTRICT g, float* HWY_RESTRICT a_gradient,
                         float* HWY_RESTRICT b_gradient, std::size_t size) {
  for_each_part(size, [=](auto d, std::size_t i) HWY_ATTR {
    const auto gradient = hn::LoadU(d, g + i);
    hn::StoreU(hn::MulAdd(gradient, hn::LoadU(d, b + i), hn::LoadU(d, a_gradient + i)), d, a_gradient + i);
    hn::StoreU(hn::MulAdd(gradient, hn::LoadU(d, a + i), hn::LoadU(d, b_gradient + i)), d, b_gradient + i);
  });
}

/// a_gradient += g * conj(b), b_gradient += g * conj(a)
void AddComplexProductGradients(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                                const float* HWY_RESTRICT g, float* HWY_RESTRICT a_gradient,
                                float* HWY_RESTRICT b_gradient, std::size_t half) {
  for_each_part(half, [=](auto d, std::size_t i) HWY_ATTR {
    const auto a_re = hn::LoadU(d, a + i), a_im = hn::LoadU(d, a + half + i);
    const auto b_re = hn::LoadU(d, b + i), b_im = hn::LoadU(d, b + half + i);
    const auto g_re = hn::LoadU(d, g + i), g_im = hn::LoadU(d, g + half + i);
    const auto add = [=](const auto& z_re, const auto& z_im, float* HWY_RESTRICT out) HWY_ATTR {
      const auto re = hn::MulAdd(g_re, z_re, hn::MulAdd(g_im, z_im, hn::LoadU(d, out + i)));
      const auto im = hn::MulAdd(g_im, z_re, hn::NegMulAdd(g_re, z_im, hn::LoadU(d, out + half + i)));
      hn::StoreU(re, d, out + i);
      hn::StoreU(im, d, out + half + i);
    };
    add(b_re, b_im, a_gradient);
    add(a_re, a_im, b_gradient);
  });
}

void AddCubicPenalty(float factor, const float* HWY_RESTRICT row, float* HWY_RESTRICT gradient,
                     std::size_t size) {
  for_each_part(size, [=](auto d, std::size_t i) HWY_ATTR {
    const auto x = hn::LoadU(d, row + i);
    const auto slope = hn::Mul(hn::Set(d, factor), hn::Abs(x));
    hn::StoreU(hn::MulAdd(slope, x, hn::LoadU(d, gradient + i)), d, gradient + i);
  });
}

void AddComplexCubicPenalty(float factor, const float* HWY_RESTRICT row, float* HWY_RESTRICT gradient,
                            std::size_t half) {
  for_each_part(half, [=](auto d, std::size_t i) HWY_ATTR {
    const auto re = hn::LoadU(d, row + i), im = hn::LoadU(d, row + half + i);
    const auto modulus = hn::Sqrt(hn::MulAdd(re, re, hn::Mul(im, im)));
    const auto slope = hn::Mul(hn::Set(d, factor), modulus);
    hn::StoreU(hn::MulAdd(slope, re, hn::LoadU(d, gradient + i)), d, gradient + i);
    hn::StoreU(hn::MulAdd(slope, im, hn::LoadU(d, gradient + half + i)), d, gradient + half + i);
  });
}

HWY_INLINE float largest(const float* HWY_RESTRICT values, std::size_t size) {
  const Vectors d;
  const std::size_t lanes = hn::Lanes(d);
  auto max0 = hn::Set(d, std::numeric_limits<float>::lowest());
  auto max1 = max0;
  std::size_t i = 0;
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    max0 = hn::Max(max0, hn::LoadU(d, values + i));
    max1 = hn::Max(max1, hn::LoadU(d, values + i + lanes));
  }
  float max = hn::GetLane(hn::MaxOfLanes(d, hn::Max(max0, max1)));
  for (; i < size; ++i) max = std::max(max, values[i]);
  return max;
}

void Scale(float factor, float* HWY_RESTRICT values, std::size_t size) {
  for_each_part(size, [=](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::Set(d, factor), hn::LoadU(d, values + i)), d, values + i);
  });
}

SoftmaxResult SoftmaxScores(float* HWY_RESTRICT scores, std::size_t size, float positive, float correction) {
  const float max = std::max(positive, largest(scores, size) + correction);
  const float shift = correction - max;
  const float sum = sum_parts(size, [=](auto d, std::size_t i) HWY_ATTR {
    const auto weight = hn::Exp(d, hn::Add(hn::LoadU(d, scores + i), hn::Set(d, shift)));
    hn::StoreU(weight, d, scores + i);
    return weight;
  });
  const float total = sum + std::exp(positive - max);
  Scale(1 / total, scores, size);
  // -(sum / total) rather than p - 1, which loses its digits when the answer is almost certain.
  return {std::log(total) + max - positive, -(sum / total), 0};
}

SoftmaxResult SoftmaxDistances(float* HWY_RESTRICT products, std::size_t size,
                               const float* HWY_RESTRICT norms, float query_norm, float positive,
                               float correction, float* HWY_RESTRICT column_sums) {
  constexpr float kSmallest = 1e-6F;  // smaller distances are rounding errors of the expanded square
  for_each_part(size, [=](auto d, std::size_t i) HWY_ATTR {
    const auto norm = hn::Add(hn::Set(d, query_norm), hn::LoadU(d, norms + i));
    const auto square = hn::NegMulAdd(hn::Set(d, 2.0F), hn::LoadU(d, products + i), norm);
    const auto distance = hn::Sqrt(hn::Max(square, hn::Set(d, kSmallest * kSmallest)));
    hn::StoreU(hn::Neg(distance), d, products + i);
  });
  positive = std::max(positive, kSmallest);
  const float positive_logit = -kTransETemperature * positive;
  const float max = std::max(positive_logit, kTransETemperature * largest(products, size) + correction);
  const float sum = sum_parts(size, [=](auto d, std::size_t i) HWY_ATTR {
    const auto distance = hn::LoadU(d, products + i);  // negative
    const auto weight =
        hn::Exp(d, hn::MulAdd(hn::Set(d, kTransETemperature), distance, hn::Set(d, correction - max)));
    hn::StoreU(hn::Div(weight, distance), d, products + i);
    return weight;
  });
  const float total = sum + std::exp(positive_logit - max);
  const float factor = -kTransETemperature / total;
  const float weight_sum = sum_parts(size, [=](auto d, std::size_t i) HWY_ATTR {
    const auto weight = hn::Mul(hn::Set(d, factor), hn::LoadU(d, products + i));
    hn::StoreU(weight, d, products + i);
    hn::StoreU(hn::Add(weight, hn::LoadU(d, column_sums + i)), d, column_sums + i);
    return weight;
  });
  const float positive_weight = -(sum / total) * kTransETemperature / positive;
  return {std::log(total) + max - positive_logit, positive_weight, weight_sum + positive_weight};
}

ScoreCounts CountScores(const float* HWY_RESTRICT scores, std::size_t size, float low, float high) {
  const Vectors d;
  const std::size_t lanes = hn::Lanes(d);
  const auto low_limit = hn::Set(d, low), high_limit = hn::Set(d, high);
  std::size_t not_above = 0, below = 0, i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto score = hn::LoadU(d, scores + i);
    not_above += hn::CountTrue(d, hn::Le(score, high_limit));
    below += hn::CountTrue(d, hn::Lt(score, low_limit));
  }
  for (; i < size; ++i) {
    not_above += scores[i] <= high;
    below += scores[i] < low;
  }
  return {size - not_above, size - below};
}

}  // namespace capstan::kge::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::kge {

HWY_EXPORT(Dot);
HWY_EXPORT(SquaredDistance);
HWY_EXPORT(AddScaled);
HWY_EXPORT(MakeSum);
HWY_EXPORT(MakeProduct);
HWY_EXPORT(MakeComplexProduct);
HWY_EXPORT(AddProductGradients);
HWY_EXPORT(AddComplexProductGradients);
HWY_EXPORT(AddCubicPenalty);
HWY_EXPORT(AddComplexCubicPenalty);
HWY_EXPORT(SoftmaxScores);
HWY_EXPORT(SoftmaxDistances);
HWY_EXPORT(CountScores);

void make_query(ModelKind kind, const float* entity, const float* relation, float* query, std::size_t dim) {
  switch (kind) {
    case ModelKind::transe:
      return HWY_DYNAMIC_DISPATCH(MakeSum)(entity, relation, query, dim);
    case ModelKind::distmult:
      return HWY_DYNAMIC_DISPATCH(MakeProduct)(entity, relation, query, dim);
    case ModelKind::complex:
      return HWY_DYNAMIC_DISPATCH(MakeComplexProduct)(entity, relation, query, dim / 2);
  }
}

void add_query_gradients(ModelKind kind, const float* entity, const float* relation,
                         const float* query_gradient, float* entity_gradient, float* relation_gradient,
                         std::size_t dim) {
  switch (kind) {
    case ModelKind::transe:
      HWY_DYNAMIC_DISPATCH(AddScaled)(1, query_gradient, entity_gradient, dim);
      return HWY_DYNAMIC_DISPATCH(AddScaled)(1, query_gradient, relation_gradient, dim);
    case ModelKind::distmult:
      return HWY_DYNAMIC_DISPATCH(AddProductGradients)(entity, relation, query_gradient, entity_gradient,
                                                       relation_gradient, dim);
    case ModelKind::complex:
      return HWY_DYNAMIC_DISPATCH(AddComplexProductGradients)(entity, relation, query_gradient,
                                                              entity_gradient, relation_gradient, dim / 2);
  }
}

float dot(const float* a, const float* b, std::size_t size) { return HWY_DYNAMIC_DISPATCH(Dot)(a, b, size); }

float squared_distance(const float* a, const float* b, std::size_t size) {
  return HWY_DYNAMIC_DISPATCH(SquaredDistance)(a, b, size);
}

void add_scaled(float factor, const float* x, float* y, std::size_t size) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(factor, x, y, size);
}

void add_cubic_penalty(ModelKind kind, float factor, const float* row, float* gradient, std::size_t dim) {
  if (kind == ModelKind::complex)
    return HWY_DYNAMIC_DISPATCH(AddComplexCubicPenalty)(factor, row, gradient, dim / 2);
  HWY_DYNAMIC_DISPATCH(AddCubicPenalty)(factor, row, gradient, dim);
}

SoftmaxResult softmax_scores(float* scores, std::size_t size, float positive, float correction) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxScores)(scores, size, positive, correction);
}

SoftmaxResult softmax_distances(float* products, std::size_t size, const float* norms, float query_norm,
                                float positive, float correction, float* column_sums) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxDistances)(products, size, norms, query_norm, positive, correction,
                                                column_sums);
}

ScoreCounts count_scores(const float* scores, std::size_t size, float low, float high) {
  return HWY_DYNAMIC_DISPATCH(CountScores)(scores, size, low, high);
}

}  // namespace capstan::kge
#endif  // HWY_ONCE
