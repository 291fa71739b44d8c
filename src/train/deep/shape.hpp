// shape.hpp -- sizes of a deep click model. The three models differ only in their interaction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/readers.hpp"

namespace capstan::train {

/// Sent over the wire: add at the end, never renumber.
enum class DeepModel : std::uint8_t {
  deepfm = 0,  ///< Guo et al., IJCAI 2017
  dlrm = 1,    ///< Naumov et al., arXiv:1906.00091, 2019
  dcn = 2,     ///< Wang et al., "DCN V2", WWW 2021
};

struct DeepShape {
  static constexpr std::size_t kIntegers = CriteoExample::kIntegers;
  /// Each integer's bucket and each category has an embedding.
  static constexpr std::size_t kFields = kIntegers + CriteoExample::kCategories;

  DeepModel model = DeepModel::deepfm;
  std::int64_t factors = 0;               // length of an embedding
  std::vector<std::int64_t> hidden = {};  // hidden layers of the top network
  std::vector<std::int64_t> bottom = {};  // dlrm only: hidden layers of the bottom network
  std::int64_t cross_layers = 0;          // dcn only

  /// Numbers of an example before the interaction: its integers, then the embeddings of its fields.
  std::size_t inputs() const { return kIntegers + kFields * static_cast<std::size_t>(factors); }
  /// Floats in a row of the table: a weight, then the embedding.
  std::size_t row_width() const { return 1 + static_cast<std::size_t>(factors); }
  /// Returns the options that make this shape, such as "--factors=16 --hidden=128,64".
  std::string text() const;
  /// Returns the shape of text(). Throws Error(invalid_argument) for another text.
  static DeepShape parse(DeepModel model, std::string_view text);
};

}  // namespace capstan::train
