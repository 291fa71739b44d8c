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

/// query = h R for a row h and a matrix R by rows
void MakeMatrixProduct(const float* HWY_RESTRICT h, const float* HWY_RESTRICT matrix,
                       float* HWY_RESTRICT query, std::size_t dim) {
  std::fill_n(query, dim, 0.0F);
  for (std::size_t row = 0; row < dim; ++row) AddScaled(h[row], matrix + row * dim, query, dim);
}

/// h_gradient += R g, matrix_gradient += outer product of h and g
void AddMatrixProductGradients(const float* HWY_RESTRICT h, const float* HWY_RESTRICT matrix,
                               const float* HWY_RESTRICT g, float* HWY_RESTRICT h_gradient,
                               float* HWY_RESTRICT matrix_gradient, std::size_t dim) {
  for (std::size_t row = 0; row < dim; ++row) {
    h_gradient[row] += Dot(matrix + row * dim, g, dim);
    AddScaled(h[row], g, matrix_gradient + row * dim, dim);
  }
}

void MakeRotation(const float* HWY_RESTRICT h, const float* HWY_RESTRICT angles, float* HWY_RESTRICT rotated,
                  std::size_t half) {
  for_each_part(half, [=](auto d, std::size_t i) HWY_ATTR {
    const auto angle = hn::Mul(hn::Set(d, kRotationScale), hn::LoadU(d, angles + i));
    const auto cos = hn::Cos(d, angle), sin = hn::Sin(d, angle);
    const auto re = hn::LoadU(d, h + i), im = hn::LoadU(d, h + half + i);
    hn::StoreU(hn::NegMulAdd(im, sin, hn::Mul(re, cos)), d, rotated + i);
    hn::StoreU(hn::MulAdd(re, sin, hn::Mul(im, cos)), d, rotated + half + i);
  });
}

/// h_gradient += g * e^(-i angle), angle_gradient += Re(conj(g) * i * h * e^(i angle))
void AddRotationGradients(const float* HWY_RESTRICT h, const float* HWY_RESTRICT angles,
                          const float* HWY_RESTRICT g, float* HWY_RESTRICT h_gradient,
                          float* HWY_RESTRICT angle_gradient, std::size_t half) {
  for_each_part(half, [=](auto d, std::size_t i) HWY_ATTR {
    const auto angle = hn::Mul(hn::Set(d, kRotationScale), hn::LoadU(d, angles + i));
    const auto cos = hn::Cos(d, angle), sin = hn::Sin(d, angle);
    const auto g_re = hn::LoadU(d, g + i), g_im = hn::LoadU(d, g + half + i);
    const auto back_re = hn::MulAdd(g_im, sin, hn::Mul(g_re, cos));
    const auto back_im = hn::NegMulAdd(g_re, sin, hn::Mul(g_im, cos));
    hn::StoreU(hn::Add(hn::LoadU(d, h_gradient + i), back_re), d, h_gradient + i);
    hn::StoreU(hn::Add(hn::LoadU(d, h_gradient + half + i), back_im), d, h_gradient + half + i);
    const auto re = hn::LoadU(d, h + i), im = hn::LoadU(d, h + half + i);
    const auto turn = hn::NegMulAdd(back_re, im, hn::Mul(back_im, re));
    const auto sum = hn::MulAdd(hn::Set(d, kRotationScale), turn, hn::LoadU(d, angle_gradient + i));
    hn::StoreU(sum, d, angle_gradient + i);
  });
}

void ModuliScores(const float* HWY_RESTRICT query, const float* HWY_RESTRICT rows, std::size_t count,
                  float* HWY_RESTRICT scores, std::size_t half) {
  for (std::size_t j = 0; j < count; ++j) {
    const float* row = rows + j * 2 * half;
    scores[j] = -sum_parts(half, [=](auto d, std::size_t i) HWY_ATTR {
      const auto re = hn::Sub(hn::LoadU(d, query + i), hn::LoadU(d, row + i));
      const auto im = hn::Sub(hn::LoadU(d, query + half + i), hn::LoadU(d, row + half + i));
      return hn::Sqrt(hn::MulAdd(re, re, hn::Mul(im, im)));
    });
  }
}

void AddModuliGradients(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT query,
                        const float* HWY_RESTRICT rows, std::size_t count, float* HWY_RESTRICT query_gradient,
                        float* HWY_RESTRICT row_gradients, std::size_t half) {
  constexpr float kSmallestSquare = 1e-30F;  // of two equal numbers, whose gradient is 0
  for (std::size_t j = 0; j < count; ++j) {
    const float* row = rows + j * 2 * half;
    float* row_gradient = row_gradients + j * 2 * half;
    const float weight = weights[j];
    for_each_part(half, [=](auto d, std::size_t i) HWY_ATTR {
      const auto re = hn::Sub(hn::LoadU(d, query + i), hn::LoadU(d, row + i));
      const auto im = hn::Sub(hn::LoadU(d, query + half + i), hn::LoadU(d, row + half + i));
      const auto square = hn::Max(hn::MulAdd(re, re, hn::Mul(im, im)), hn::Set(d, kSmallestSquare));
      // A step of Newton's method corrects the estimate of 1 / modulus.
      const auto estimate = hn::ApproximateReciprocalSqrt(square);
      const auto error =
          hn::NegMulAdd(hn::Mul(hn::Mul(hn::Set(d, 0.5F), square), estimate), estimate, hn::Set(d, 1.5F));
      const auto slope = hn::Mul(hn::Set(d, weight), hn::Mul(estimate, error));
      const auto add = [=](const auto& difference, std::size_t at) HWY_ATTR {
        const auto pull = hn::Mul(slope, difference);
        hn::StoreU(hn::Sub(hn::LoadU(d, query_gradient + at), pull), d, query_gradient + at);
        hn::StoreU(hn::Add(hn::LoadU(d, row_gradient + at), pull), d, row_gradient + at);
      };
      add(re, i);
      add(im, half + i);
    });
  }
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

SoftmaxResult SelfAdversarialScores(float* HWY_RESTRICT scores, std::size_t size, float positive,
                                    float margin) {
  const float max = largest(scores, size);
  const auto weight_of = [=](auto d, const auto& score) HWY_ATTR {
    return hn::Exp(d, hn::Mul(hn::Set(d, kAdversarialTemperature), hn::Sub(score, hn::Set(d, max))));
  };
  const float total =
      sum_parts(size, [=](auto d, std::size_t i) HWY_ATTR { return weight_of(d, hn::LoadU(d, scores + i)); });
  const float loss = sum_parts(size, [=](auto d, std::size_t i) HWY_ATTR {
    const auto score = hn::LoadU(d, scores + i);
    const auto weight = hn::Mul(weight_of(d, score), hn::Set(d, 1 / total));
    const auto logit = hn::Add(score, hn::Set(d, margin));
    const auto small = hn::Exp(d, hn::Neg(hn::Abs(logit)));
    const auto one = hn::Set(d, 1.0F);
    const auto above = hn::Ge(logit, hn::Zero(d));
    const auto sigmoid = hn::Div(hn::IfThenElse(above, one, small), hn::Add(one, small));
    hn::StoreU(hn::Mul(weight, sigmoid), d, scores + i);
    return hn::Mul(weight, hn::Add(hn::Max(logit, hn::Zero(d)), hn::Log1p(d, small)));
  });
  const float logit = positive + margin;
  const float small = std::exp(-std::abs(logit));
  return {loss + std::max(-logit, 0.0F) + std::log1p(small), -(logit >= 0 ? small : 1.0F) / (1 + small), 0};
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
HWY_EXPORT(MakeMatrixProduct);
HWY_EXPORT(AddMatrixProductGradients);
HWY_EXPORT(MakeRotation);
HWY_EXPORT(AddRotationGradients);
HWY_EXPORT(ModuliScores);
HWY_EXPORT(AddModuliGradients);
HWY_EXPORT(AddCubicPenalty);
HWY_EXPORT(AddComplexCubicPenalty);
HWY_EXPORT(SoftmaxScores);
HWY_EXPORT(SelfAdversarialScores);
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
    case ModelKind::rescal:
      return HWY_DYNAMIC_DISPATCH(MakeMatrixProduct)(entity, relation, query, dim);
    case ModelKind::rotate:
      return HWY_DYNAMIC_DISPATCH(MakeRotation)(entity, relation, query, dim / 2);
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
    case ModelKind::rescal:
      return HWY_DYNAMIC_DISPATCH(AddMatrixProductGradients)(entity, relation, query_gradient,
                                                             entity_gradient, relation_gradient, dim);
    case ModelKind::rotate:
      return HWY_DYNAMIC_DISPATCH(AddRotationGradients)(entity, relation, query_gradient, entity_gradient,
                                                        relation_gradient, dim / 2);
  }
}

float dot(const float* a, const float* b, std::size_t size) { return HWY_DYNAMIC_DISPATCH(Dot)(a, b, size); }

float squared_distance(const float* a, const float* b, std::size_t size) {
  return HWY_DYNAMIC_DISPATCH(SquaredDistance)(a, b, size);
}

void add_scaled(float factor, const float* x, float* y, std::size_t size) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(factor, x, y, size);
}

void add_cubic_penalty(ModelKind kind, float factor, const float* row, float* gradient, std::size_t size) {
  if (has_complex_rows(kind))
    return HWY_DYNAMIC_DISPATCH(AddComplexCubicPenalty)(factor, row, gradient, size / 2);
  HWY_DYNAMIC_DISPATCH(AddCubicPenalty)(factor, row, gradient, size);
}

void moduli_scores(const float* query, const float* rows, std::size_t count, float* scores, std::size_t dim) {
  HWY_DYNAMIC_DISPATCH(ModuliScores)(query, rows, count, scores, dim / 2);
}

float score(ModelKind kind, const float* query, const float* row, std::size_t dim) {
  switch (comparison_of(kind)) {
    case Comparison::distance:
      return -squared_distance(query, row, dim);
    case Comparison::moduli: {
      float sum = 0;
      moduli_scores(query, row, 1, &sum, dim);
      return sum;
    }
    case Comparison::product:
      break;
  }
  return dot(query, row, dim);
}

void add_moduli_gradients(const float* weights, const float* query, const float* rows, std::size_t count,
                          float* query_gradient, float* row_gradients, std::size_t dim) {
  HWY_DYNAMIC_DISPATCH(AddModuliGradients)
  (weights, query, rows, count, query_gradient, row_gradients, dim / 2);
}

SoftmaxResult softmax_scores(float* scores, std::size_t size, float positive, float correction) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxScores)(scores, size, positive, correction);
}

SoftmaxResult self_adversarial_scores(float* scores, std::size_t size, float positive, float margin) {
  return HWY_DYNAMIC_DISPATCH(SelfAdversarialScores)(scores, size, positive, margin);
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
