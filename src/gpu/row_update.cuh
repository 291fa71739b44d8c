// row_update.cuh -- definition of Updater, instantiated for some types by each including file.
#pragma once

#include <algorithm>
#include <bit>
#include <string>

#include "capstan/error.hpp"
#include "gpu/each.cuh"
#include "gpu/pieces.hpp"
#include "gpu/row_bodies.hpp"
#include "gpu/row_ops.hpp"
#include "gpu/row_sort.hpp"

namespace capstan::gpu {

/// Number of elements of type T in the widest pack.
template <class T>
inline constexpr int kWide = 16 / sizeof(T);

/// Calls f(elements per pack) with the widest pack that divides `width`.
template <class T, class F>
void with_count(std::uint64_t width, const F& f) {
  if (width % kWide<T> == 0) return f(std::integral_constant<int, kWide<T>>());
  f(std::integral_constant<int, 1>());
}

template <class A>
void Updater::find_owners(const Stream& stream, const std::uint32_t* rows, std::uint32_t count,
                          std::uint64_t width, A* gradient, std::uint32_t* first_bad) {
  each<4>(stream, ClaimBody{heads_.data(), table_rows_, rows, first_bad}, count);
  with_count<A>(width, [&](auto elements) {
    using P = Pack<A, decltype(elements)::value>;
    const std::uint64_t packs = width / decltype(elements)::value;
    in_pieces(count, packs, [&](std::uint32_t first, std::uint32_t piece) {
      const FoldBody<P, A> body{heads_.data(), table_rows_, Divider(static_cast<std::uint32_t>(packs)),
                                rows,          gradient,    scratch_->owns_.data(),
                                first};
      each<4>(stream, body, static_cast<std::uint32_t>(piece * packs));
    });
  });
}

template <class A>
void Updater::sum_in_order(const Stream& stream, const std::uint32_t* rows, std::uint32_t count,
                           std::uint64_t width, A* gradient, std::uint32_t* first_bad) {
  // Sorts by all 32 bits, because rows that are not in the table may have any value.
  sort_rows(stream, scratch_->scratch_, count, 32, rows, scratch_->sorted_rows_.data(),
            scratch_->order_in_.data(), scratch_->order_.data());
  each<4>(stream, StartBody{scratch_->sorted_rows_.data(), scratch_->starts_in_.data()}, count);
  running_maximum(stream, scratch_->scratch_, count, scratch_->starts_in_.data(), scratch_->starts_.data());
  with_count<A>(width, [&](auto elements) {
    using P = Pack<A, decltype(elements)::value>;
    const std::uint64_t packs = width / decltype(elements)::value;
    for (std::uint64_t stride = 1; stride < count; stride *= 2) {
      in_pieces(count, packs, [&](std::uint32_t first, std::uint32_t piece) {
        const TreeBody<P, A> body{scratch_->starts_.data(),
                                  scratch_->order_.data(),
                                  count,
                                  static_cast<std::uint32_t>(stride),
                                  Divider(static_cast<std::uint32_t>(packs)),
                                  gradient,
                                  first};
        each<4>(stream, body, static_cast<std::uint32_t>(piece * packs));
      });
    }
  });
  each<4>(stream,
          OwnerBody{scratch_->sorted_rows_.data(), scratch_->starts_.data(), scratch_->order_.data(),
                    table_rows_, scratch_->owns_.data(), first_bad},
          count);
}

/// Calls f(rule) with the rule of the optimizer.
template <class A, class F>
void with_rule(const Optimizer& o, std::int64_t step, const F& f) {
  if constexpr (std::is_integral_v<A>) {
    if (o.kind != OptimizerKind::sgd) {
      throw Error(Code::invalid_argument,
                  "table of integers: found optimizer " + std::string(to_string(o.kind)) + ", expected sgd");
    }
    f(IntegerSgd<A>(o));
  } else {
    switch (o.kind) {
      case OptimizerKind::sgd:
        return f(Sgd<A>(o));
      case OptimizerKind::adagrad:
        return f(Adagrad<A>(o));
      case OptimizerKind::adam:
        return f(Adam<A, false>(o, step));
      case OptimizerKind::momentum:
        return o.nesterov ? f(Momentum<A, true>(o)) : f(Momentum<A, false>(o));
      case OptimizerKind::rmsprop:
        return f(RmsProp<A>(o));
      case OptimizerKind::adamw:
        return f(Adam<A, true>(o, step));
      case OptimizerKind::ftrl:
        return o.learning_rate_power == -0.5 ? f(Ftrl<A, SquareRoot>(o)) : f(Ftrl<A, AnyPower>(o));
    }
  }
}

/// Applies one rule; `owns` and `heads` as in UpdateBody.
template <class T, class Rule>
void update_rows(const Stream& stream, const Rule& rule, const Update<T>& update,
                 const Arithmetic<T>* gradient, const std::uint8_t* owns, std::uint32_t* heads) {
  with_count<T>(update.width, [&](auto elements) {
    constexpr int kCount = decltype(elements)::value;
    using W = Pack<T, kCount>;
    using G = Pack<Arithmetic<T>, kCount>;
    const std::uint64_t packs = update.width / kCount;
    in_pieces(update.count, packs, [&](std::uint32_t first, std::uint32_t rows) {
      const bool dense = update.rows == nullptr;
      const UpdateBody<T, W, G, Rule> body{rule,
                                           reinterpret_cast<W*>(update.values),
                                           reinterpret_cast<G*>(update.slot0),
                                           reinterpret_cast<G*>(update.slot1),
                                           Divider(static_cast<std::uint32_t>(packs)),
                                           dense ? nullptr : update.rows + first,
                                           owns == nullptr ? nullptr : owns + first,
                                           heads,
                                           update.first_row + first,
                                           reinterpret_cast<const G*>(gradient) + first * packs,
                                           update.rounding};
      each<2>(stream, body, static_cast<std::uint32_t>(rows * packs));
    });
  });
}

/// Applies SGD by atomics on the table, so that the gradients of a row need not be summed first.
template <class T>
void add_rows(const Stream& stream, const Optimizer& sgd, const Update<T>& update) {
  with_count<T>(update.width, [&](auto elements) {
    using P = Pack<T, decltype(elements)::value>;
    const std::uint64_t packs = update.width / decltype(elements)::value;
    in_pieces(update.count, packs, [&](std::uint32_t first, std::uint32_t rows) {
      const AddBody<P, T> body{update.values,
                               update.table_rows,
                               static_cast<T>(-sgd.learning_rate),
                               Divider(static_cast<std::uint32_t>(packs)),
                               update.rows + first,
                               reinterpret_cast<const P*>(update.gradient) + first * packs,
                               first,
                               update.first_bad};
      each<4>(stream, body, static_cast<std::uint32_t>(rows * packs));
    });
  });
}

template <class T>
void Updater::apply(const Stream& stream, const Optimizer& optimizer, const Update<T>& update) {
  if (update.count == 0 || update.width == 0) return;
  const DeviceGuard guard(stream);
  using A = Arithmetic<T>;
  if constexpr (std::is_floating_point_v<T>) {
    const bool is_sum = optimizer.kind == OptimizerKind::sgd && !scratch_->deterministic();
    if (is_sum && update.rows != nullptr) return add_rows(stream, optimizer, update);
  }
  A* gradient = nullptr;
  if constexpr (std::is_same_v<A, T>) {
    gradient = update.gradient;
  } else {
    const std::uint64_t elements = std::uint64_t{update.count} * update.width;
    scratch_->reserve(stream, 0, elements);
    gradient = scratch_->widened_.data();
    in_pieces(update.count, update.width, [&](std::uint32_t first, std::uint32_t rows) {
      const std::uint64_t at = first * update.width;
      each<4>(stream, WidenBody<T>{update.gradient + at, gradient + at},
              static_cast<std::uint32_t>(rows * update.width));
    });
  }
  const bool sparse = update.rows != nullptr;
  if (sparse) {
    scratch_->reserve(stream, update.count, 0);
    if (scratch_->deterministic()) {
      sum_in_order(stream, update.rows, update.count, update.width, gradient, update.first_bad);
    } else {
      find_owners(stream, update.rows, update.count, update.width, gradient, update.first_bad);
    }
  }
  with_rule<A>(optimizer, update.step, [&](const auto& rule) {
    update_rows(stream, rule, update, gradient, sparse ? scratch_->owns_.data() : nullptr,
                sparse && !scratch_->deterministic() ? heads_.data() : nullptr);
  });
}

}  // namespace capstan::gpu
