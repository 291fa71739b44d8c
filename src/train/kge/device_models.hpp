// device_models.hpp -- selects the instantiation of a GPU body for a model and a row width. REQUIRES:
// runs_on_gpu(model).
#pragma once

#include <cstdint>

#include "base/assert.hpp"
#include "gpu/divider.hpp"
#include "train/kge/model.hpp"

namespace capstan::kge {

template <ModelKind kModel>
struct ModelTag {
  static constexpr ModelKind kKind = kModel;
};
template <int kCount>
struct WidthTag {
  static constexpr int kWidth = kCount;
};

template <class F>
void with_model(ModelKind model, const F& f) {
  switch (model) {
    case ModelKind::transe:
      return f(ModelTag<ModelKind::transe>());
    case ModelKind::distmult:
      return f(ModelTag<ModelKind::distmult>());
    case ModelKind::complex:
      return f(ModelTag<ModelKind::complex>());
    case ModelKind::rescal:
    case ModelKind::rotate:
      CAPSTAN_ASSERT(runs_on_gpu(model));
  }
}

/// Calls f(model, width, units per row). Units are 16 bytes where the size of a row, or of its halves, is a
/// multiple of that.
template <class F>
void with_unit(ModelKind model, std::uint32_t part_size, const F& f) {
  with_model(model, [&](auto tag) {
    if (part_size % 4 == 0) return f(tag, WidthTag<4>(), gpu::Divider(part_size / 4));
    f(tag, WidthTag<1>(), gpu::Divider(part_size));
  });
}

}  // namespace capstan::kge
