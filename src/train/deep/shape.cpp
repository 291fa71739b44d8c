// shape.cpp -- text of a shape.
#include "train/deep/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace capstan::train {

std::string DeepShape::text() const {
  std::string text = fmt::format("--factors={} --hidden={}", factors, fmt::join(hidden, ","));
  if (model == DeepModel::dlrm) text += fmt::format(" --bottom={}", fmt::join(bottom, ","));
  if (model == DeepModel::dcn) text += fmt::format(" --cross-layers={}", cross_layers);
  return text;
}

}  // namespace capstan::train
