// keras.cpp -- a group per layer, a dataset per weight, and the attributes that define their order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "capstan/error.hpp"
#include "io/export/export.hpp"
#include "io/export/npy.hpp"
#include "io/hdf5/hdf5_layout.hpp"

namespace capstan::io {
namespace {

/// Keras splits lists of names above this size, because an attribute must fit into an HDF5 object header.
constexpr std::size_t kMaxAttributeBytes = 64'512;

/// Order in which Keras's layers create their weights. A layer loads weights by position, not by name.
constexpr std::array<std::string_view, 12> kKerasOrder{"embeddings",
                                                       "kernel",
                                                       "depthwise_kernel",
                                                       "pointwise_kernel",
                                                       "recurrent_kernel",
                                                       "bias",
                                                       "gamma",
                                                       "beta",
                                                       "moving_mean",
                                                       "moving_variance",
                                                       "alpha",
                                                       "count"};

struct Layer {
  std::string name;
  std::vector<const ArrayInfo*> weights;
};

std::string_view layer_of(const ArrayInfo& array) {
  const std::string_view name = array.variable;
  return name.substr(0, name.find('/'));
}

/// Returns the position in kKerasOrder of the last component of the name, or kKerasOrder.size() if it is not
/// listed there.
std::size_t keras_position(const ArrayInfo* array) {
  const std::string_view name = array->variable;
  const auto found = std::find(kKerasOrder.begin(), kKerasOrder.end(), name.substr(name.rfind('/') + 1));
  return static_cast<std::size_t>(found - kKerasOrder.begin());
}

/// Layers in the order of their first array.
std::vector<Layer> layers_of(const std::vector<ArrayInfo>& arrays) {
  std::vector<Layer> layers;
  for (const ArrayInfo& array : arrays) {
    const auto found = std::find_if(layers.begin(), layers.end(),
                                    [&](const Layer& layer) { return layer.name == layer_of(array); });
    if (found == layers.end()) {
      layers.push_back({std::string(layer_of(array)), {&array}});
    } else {
      found->weights.push_back(&array);
    }
  }
  for (Layer& layer : layers) {
    std::stable_sort(layer.weights.begin(), layer.weights.end(), [](const ArrayInfo* a, const ArrayInfo* b) {
      return keras_position(a) < keras_position(b);
    });
  }
  return layers;
}

/// Keras's files append the index of a TensorFlow output: "w" is "w:0".
std::string weight_name(const ArrayInfo& array) {
  return array.variable + (array.component == kValue ? "" : "/" + array.component) + ":0";
}

void add_names(std::vector<Hdf5Attribute>& to, const std::string& object, const std::string& name,
               const std::vector<std::string>& names) {
  std::size_t longest = 1;
  for (const std::string& text : names) longest = std::max(longest, text.size());
  const std::size_t chunk_names = kMaxAttributeBytes / longest;
  if (names.size() <= chunk_names) {
    to.push_back({object, name, names});
    return;
  }
  for (std::size_t first = 0, chunk = 0; first < names.size(); first += chunk_names, ++chunk) {
    const auto begin = names.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(first + chunk_names, names.size()));
    to.push_back({object, fmt::format("{}{}", name, chunk), std::vector<std::string>(begin, end)});
  }
}

}  // namespace

void export_keras(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                  const ProgressCallback& progress) {
  const std::vector<Layer> layers = layers_of(arrays);
  std::vector<Hdf5Attribute> attributes{
      {"/", "backend", std::string("tensorflow")},
      // Without a version, or with version 1, Keras converts weights from the layout of Keras 1.
      {"/", "keras_version", std::string("2.0.0")}};
  std::vector<Hdf5Dataset> datasets;
  std::vector<const ArrayInfo*> in_order;
  std::vector<std::string> layer_names;
  for (const Layer& layer : layers) {
    std::vector<std::string> weight_names;
    for (const ArrayInfo* array : layer.weights) {
      weight_names.push_back(weight_name(*array));
      datasets.push_back({layer.name + "/" + weight_names.back(), numpy_dtype(array->dtype), array->shape});
      in_order.push_back(array);
    }
    layer_names.push_back(layer.name);
    add_names(attributes, layer.name, "weight_names", weight_names);
  }
  add_names(attributes, "/", "layer_names", layer_names);
  const auto offsets = lay_out_hdf5(to.temporary(), datasets, attributes);
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    std::uint64_t at = offsets[i];
    read_exported(from, *in_order[i], /*widen=*/true, progress, [&](std::string_view piece) {
      to.write_at(at, piece);
      at += piece.size();
    });
  }
}

}  // namespace capstan::io
