// kernels.cpp -- see kernels.hpp. The first part is compiled once for each instruction set.
#include "train/deep/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/deep/kernels.cpp"
#include <hwy/foreach_target.h>  // must precede the one below to compile this file once per target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::train::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls f(d, k) for the columns from k on, as many as a vector of `d` has; the last columns one by one.
template <class F>
HWY_INLINE void for_columns(std::size_t columns, const F& f) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t k = 0;
  for (; k + lanes <= columns; k += lanes) f(d, k);
  for (; k < columns; ++k) f(one, k);
}

float GatherFields(const FieldSlots& fields, const float* rows, float* embeddings) {
  float weights = 0;
  for (std::size_t field = 0; field < fields.count; ++field) {
    const float* row = rows + fields.slots[field] * (fields.factors + 1);
    float* into = embeddings + field * fields.factors;
    weights += *row;
    for_columns(fields.factors,
                [=](auto d, std::size_t k) HWY_ATTR { hn::StoreU(hn::LoadU(d, row + 1 + k), d, into + k); });
  }
  return weights;
}

void ScatterFields(const FieldSlots& fields, float slope, const float* embeddings, float* rows) {
  for (std::size_t field = 0; field < fields.count; ++field) {
    float* row = rows + fields.slots[field] * (fields.factors + 1);
    const float* from = embeddings + field * fields.factors;
    *row += slope;
    for_columns(fields.factors, [=](auto d, std::size_t k) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, row + 1 + k), hn::LoadU(d, from + k)), d, row + 1 + k);
    });
  }
}

HWY_INLINE float scale_of(const ScaledVectors& terms, std::size_t k) {
  return terms.scales == nullptr ? 1 : terms.scales[k];
}

float AddVectors(const ScaledVectors& terms, float* sums) {
  float all_squares = 0;
  for_columns(terms.factors, [&](auto d, std::size_t f) HWY_ATTR {
    auto sum = hn::LoadU(d, sums + f), squares = hn::Zero(d);
    for (std::size_t k = 0; k < terms.count; ++k) {
      const auto vector = hn::LoadU(d, terms.vectors + k * terms.factors + f);
      const auto term = hn::Mul(vector, hn::Set(d, scale_of(terms, k)));
      sum = hn::Add(sum, term);
      squares = hn::MulAdd(term, term, squares);
    }
    hn::StoreU(sum, d, sums + f);
    all_squares += hn::GetLane(hn::SumOfLanes(d, squares));
  });
  return all_squares;
}

void AddPairGradients(const ScaledVectors& terms, const float* sums, float slope, float* gradients) {
  for_columns(terms.factors, [&](auto d, std::size_t f) HWY_ATTR {
    const auto sum = hn::LoadU(d, sums + f);
    for (std::size_t k = 0; k < terms.count; ++k) {
      const float x = scale_of(terms, k);
      float* into = gradients + k * terms.factors + f;
      const auto vector = hn::LoadU(d, terms.vectors + k * terms.factors + f);
      const auto others = hn::NegMulAdd(vector, hn::Set(d, x), sum);
      hn::StoreU(hn::MulAdd(hn::Set(d, slope * x), others, hn::LoadU(d, into)), d, into);
    }
  });
}

}  // namespace capstan::train::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::train {

HWY_EXPORT(GatherFields);
HWY_EXPORT(ScatterFields);
HWY_EXPORT(AddVectors);
HWY_EXPORT(AddPairGradients);

float gather_fields(const FieldSlots& fields, const float* rows, float* embeddings) {
  return HWY_DYNAMIC_DISPATCH(GatherFields)(fields, rows, embeddings);
}

void scatter_fields(const FieldSlots& fields, float slope, const float* embeddings, float* rows) {
  HWY_DYNAMIC_DISPATCH(ScatterFields)(fields, slope, embeddings, rows);
}

float add_vectors(const ScaledVectors& terms, float* sums) {
  return HWY_DYNAMIC_DISPATCH(AddVectors)(terms, sums);
}

void add_pair_gradients(const ScaledVectors& terms, const float* sums, float slope, float* gradients) {
  HWY_DYNAMIC_DISPATCH(AddPairGradients)(terms, sums, slope, gradients);
}

}  // namespace capstan::train
#endif
