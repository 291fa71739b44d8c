// device_bodies.hpp -- element-wise GPU kernels that run before and after the matrix products of a network;
// see row_bodies.hpp and blocks.cuh for the calling convention.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/both.hpp"
#include "gpu/divider.hpp"
#include "gpu/reduction.hpp"

namespace capstan::train {

using gpu::Divider;

/// Result of find() in bodies whose load() needs no location.
struct NoLocation {};

/// Partial sums of a matrix product: `count` matrices, `stride` floats apart.
struct PartialSums {
  const float* first;
  std::uint32_t count;
  std::uint64_t stride;

  CAPSTAN_BOTH float sum(std::uint64_t at) const {
    float total = first[at];
    for (std::uint32_t part = 1; part < count; ++part) total += first[part * stride + at];
    return total;
  }
};

/// Converts input bytes to floats in [0, 1], with a 1 at the end of each row. One number per element.
struct InputBody {
  const std::uint8_t* bytes;
  float* rows;
  Divider columns;  // including the bias column

  CAPSTAN_BOTH NoLocation find(std::uint32_t) const { return {}; }
  CAPSTAN_BOTH float load(std::uint32_t number, NoLocation) const {
    const auto [example, column] = columns(number);
    const std::uint32_t width = columns.divisor() - 1;
    return column == width ? 1.0F
                           : static_cast<float>(bytes[std::uint64_t{example} * width + column]) / 255.0F;
  }
  CAPSTAN_BOTH void store(std::uint32_t number, NoLocation, float value) const { rows[number] = value; }
};

/// Applies ReLU to the results of a layer, with a 1 at the end of each row. One number per element.
struct ReluBody {
  PartialSums results;
  float* rows;
  Divider columns;  // including the bias column

  CAPSTAN_BOTH NoLocation find(std::uint32_t) const { return {}; }
  CAPSTAN_BOTH float load(std::uint32_t number, NoLocation) const {
    const auto [example, column] = columns(number);
    const std::uint32_t width = columns.divisor() - 1;
    if (column == width) return 1.0F;
    const float result = results.sum(std::uint64_t{example} * width + column);
    return result < 0 ? 0 : result;
  }
  CAPSTAN_BOTH void store(std::uint32_t number, NoLocation, float value) const { rows[number] = value; }
};

/// Computes the gradient of the loss with respect to a layer's inputs: 0 where the input is not positive. One
/// number per element.
struct MaskBody {
  PartialSums results;
  const float* active;  // the layer's inputs: rows that end in 1
  float* slopes;
  Divider columns;  // excluding the bias column

  CAPSTAN_BOTH NoLocation find(std::uint32_t) const { return {}; }
  CAPSTAN_BOTH float load(std::uint32_t number, NoLocation) const {
    const auto [example, column] = columns(number);
    const float input = active[std::uint64_t{example} * (columns.divisor() + 1) + column];
    return input > 0 ? results.sum(number) : 0;
  }
  CAPSTAN_BOTH void store(std::uint32_t number, NoLocation, float slope) const { slopes[number] = slope; }
};

/// gradient += decay * values. One number per element.
struct DecayBody {
  const float* values;
  float* gradient;
  float decay;

  CAPSTAN_BOTH NoLocation find(std::uint32_t) const { return {}; }
  CAPSTAN_BOTH float load(std::uint32_t number, NoLocation) const {
    return gradient[number] + decay * values[number];
  }
  CAPSTAN_BOTH void store(std::uint32_t number, NoLocation, float sum) const { gradient[number] = sum; }
};

/// Scores an example as Scores::add does: computes its loss in double, and 1 if the predicted class, the
/// first one with the largest logit, is the label. One number per example.
struct ScoreBody {
  PartialSums logits;
  std::uint32_t classes;
  const std::uint8_t* labels;
  float* losses;
  float* correct;

  struct Score {
    float loss, correct;
  };
  CAPSTAN_BOTH std::uint32_t find(std::uint32_t example) const { return labels[example]; }
  CAPSTAN_BOTH Score load(std::uint32_t example, std::uint32_t label) const {
    const std::uint64_t row = std::uint64_t{example} * classes;
    std::uint32_t largest = 0;
    float max_logit = logits.sum(row);
    for (std::uint32_t c = 1; c < classes; ++c) {
      const float logit = logits.sum(row + c);
      if (max_logit < logit) largest = c;
      if (max_logit < logit) max_logit = logit;
    }
    const auto base = static_cast<double>(max_logit);
    double total = 0;
    for (std::uint32_t c = 0; c < classes; ++c) {
      total += std::exp(static_cast<double>(logits.sum(row + c)) - base);
    }
    const double own = static_cast<double>(logits.sum(row + label)) - base;
    return {static_cast<float>(std::log(total) - own), largest == label ? 1.0F : 0.0F};
  }
  CAPSTAN_BOTH void store(std::uint32_t example, std::uint32_t, const Score& score) const {
    losses[example] = score.loss;
    correct[example] = score.correct;
  }
};

/// Computes the loss of an example and its gradient with respect to the logits, scale * (probability -
/// [label]). One block per example.
struct SlopesBody {
  static constexpr std::uint32_t kThreads = 64;
  using Floats = gpu::Reduction<float, kThreads>;
  struct Shared {
    Floats reduction;
  };
  struct ThreadState {
    float max_logit, total;
  };

  PartialSums logits;
  std::uint32_t classes;
  const std::uint8_t* labels;
  float scale;
  float* slopes;
  float* losses;

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t example) const {
    const std::uint64_t row = std::uint64_t{example} * classes;
    const std::uint32_t label = labels[example];
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      state.max_logit = logits.sum(row);
      for (std::uint32_t c = thread; c < classes; c += kThreads) {
        slopes[row + c] = logits.sum(row + c);
        state.max_logit = gpu::Larger::of(state.max_logit, slopes[row + c]);
      }
    });
    Floats::template run<gpu::Larger, ThreadState, Shared>(block, &ThreadState::max_logit);
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      state.total = 0;
      for (std::uint32_t c = thread; c < classes; c += kThreads) {
        state.total += std::exp(slopes[row + c] - state.max_logit);
      }
    });
    Floats::template run<gpu::Sum, ThreadState, Shared>(block, &ThreadState::total);
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      for (std::uint32_t c = thread; c < classes; c += kThreads) {
        const float logit = slopes[row + c];
        if (c == label) losses[example] = std::log(state.total) + state.max_logit - logit;
        const float probability = std::exp(logit - state.max_logit) / state.total;
        slopes[row + c] = scale * (c == label ? probability - 1 : probability);
      }
    });
  }
};

}  // namespace capstan::train
