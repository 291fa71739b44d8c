// row_loops.cpp -- compiled by Highway for every vector width; the widest is selected at run time.
#include "perf/bench/row_loops.hpp"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "perf/bench/row_loops.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::perf::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Id = std::int64_t;

constexpr std::size_t kLineFloats = 16;

/// Calls element(d, from, at) for each vector of each row ids[i] of `table`. `d` is Highway's tag of the
/// vector, `from` its address in the table, `at` its offset in an array of only these rows. Rows have kWidth
/// floats, or `any_width` if kWidth is 0.
template <std::size_t kWidth, class Table, class Element>
void for_rows(Table* table, std::span<const Id> ids, std::size_t any_width, std::size_t ahead,
              const Element& element) {
  const std::size_t width = kWidth != 0 ? kWidth : any_width;
  const hn::CappedTag<float, kWidth != 0 ? kWidth : 1> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i + ahead < ids.size()) {
      const float* next = table + static_cast<std::size_t>(ids[i + ahead]) * width;
      for (std::size_t j = 0; j < width; j += kLineFloats) hwy::Prefetch(next + j);
    }
    Table* row = table + static_cast<std::size_t>(ids[i]) * width;
    for (std::size_t j = 0; j < width; j += lanes) element(d, row + j, i * width + j);
  }
}

template <class Table, class Element>
void for_rows_of_width(Table* table, std::span<const Id> ids, std::size_t width, int ahead,
                       const Element& element) {
  const auto distance = static_cast<std::size_t>(ahead);
  switch (width) {
    case 16:
      return for_rows<16>(table, ids, width, distance, element);
    case 32:
      return for_rows<32>(table, ids, width, distance, element);
    case 64:
      return for_rows<64>(table, ids, width, distance, element);
    case 128:
      return for_rows<128>(table, ids, width, distance, element);
    case 256:
      return for_rows<256>(table, ids, width, distance, element);
    default:
      return for_rows<0>(table, ids, width, distance, element);
  }
}

void gather_kernel(const float* table, std::span<const Id> ids, std::uint64_t width, int ahead, float* out) {
  for_rows_of_width(table, ids, width, ahead, [out](auto d, const float* from, std::size_t at) {
    hn::StoreU(hn::LoadU(d, from), d, out + at);
  });
}

void scatter_sgd_kernel(float* table, std::span<const Id> ids, std::uint64_t width, int ahead, float rate,
                        const float* gradient) {
  for_rows_of_width(table, ids, width, ahead, [rate, gradient](auto d, float* w, std::size_t at) {
    hn::StoreU(hn::NegMulAdd(hn::Set(d, rate), hn::LoadU(d, gradient + at), hn::LoadU(d, w)), d, w);
  });
}

void dense_sgd_kernel(std::span<float> table, float rate, const float* gradient) {
  const hn::ScalableTag<float> d;
  const auto step = [&](auto tag, std::size_t i) {
    float* w = table.data() + i;
    hn::StoreU(hn::NegMulAdd(hn::Set(tag, rate), hn::LoadU(tag, gradient + i), hn::LoadU(tag, w)), tag, w);
  };
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= table.size(); i += hn::Lanes(d)) step(d, i);
  for (; i < table.size(); ++i) step(hn::CappedTag<float, 1>(), i);
}

template <std::size_t kArrays>
void add_to_arrays(float* const* arrays, const std::uint32_t* rows, std::size_t count, std::size_t width,
                   std::size_t ahead, const float* gradient) {
  const hn::ScalableTag<float> d;
  const auto add = [&](auto tag, std::size_t at, const float* g) {
    const auto delta = hn::LoadU(tag, g);
    for (std::size_t a = 0; a < kArrays; ++a) {
      hn::StoreU(hn::Add(hn::LoadU(tag, arrays[a] + at), delta), tag, arrays[a] + at);
    }
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (rows != nullptr && i + ahead < count) {
      const std::size_t next = rows[i + ahead] * width;
      for (std::size_t a = 0; a < kArrays; ++a) {
        for (std::size_t j = 0; j < width; j += kLineFloats) hwy::Prefetch(arrays[a] + next + j);
      }
    }
    const std::size_t row = (rows != nullptr ? rows[i] : i) * width;
    std::size_t j = 0;
    for (; j + hn::Lanes(d) <= width; j += hn::Lanes(d)) add(d, row + j, gradient + i * width + j);
    for (; j < width; ++j) add(hn::CappedTag<float, 1>(), row + j, gradient + i * width + j);
  }
}

void add_rows_kernel(std::span<float* const> arrays, const std::uint32_t* rows, std::size_t count,
                     std::uint64_t width, int ahead, const float* gradient) {
  const auto distance = static_cast<std::size_t>(ahead);
  switch (arrays.size()) {
    case 1:
      return add_to_arrays<1>(arrays.data(), rows, count, width, distance, gradient);
    case 2:
      return add_to_arrays<2>(arrays.data(), rows, count, width, distance, gradient);
    case 3:
      return add_to_arrays<3>(arrays.data(), rows, count, width, distance, gradient);
    default:
      return add_to_arrays<4>(arrays.data(), rows, count, width, distance, gradient);
  }
}

}  // namespace capstan::perf::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::perf {

HWY_EXPORT(gather_kernel);
HWY_EXPORT(scatter_sgd_kernel);
HWY_EXPORT(dense_sgd_kernel);
HWY_EXPORT(add_rows_kernel);

void gather(const float* table, std::span<const std::int64_t> ids, std::uint64_t width, int ahead,
            float* out) {
  HWY_DYNAMIC_DISPATCH(gather_kernel)(table, ids, width, ahead, out);
}

void scatter_sgd(float* table, std::span<const std::int64_t> ids, std::uint64_t width, int ahead, float rate,
                 const float* gradient) {
  HWY_DYNAMIC_DISPATCH(scatter_sgd_kernel)(table, ids, width, ahead, rate, gradient);
}

void dense_sgd(std::span<float> table, float rate, const float* gradient) {
  HWY_DYNAMIC_DISPATCH(dense_sgd_kernel)(table, rate, gradient);
}

void add_rows(std::span<float* const> arrays, const std::uint32_t* rows, std::size_t count,
              std::uint64_t width, int ahead, const float* gradient) {
  HWY_DYNAMIC_DISPATCH(add_rows_kernel)(arrays, rows, count, width, ahead, gradient);
}

}  // namespace capstan::perf
#endif
