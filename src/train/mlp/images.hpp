// images.hpp -- a share of images and their labels, from IDX files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "train/example_selector.hpp"

namespace capstan::train {

struct ImageFiles {
  std::vector<std::filesystem::path> images;
  std::vector<std::filesystem::path> labels;  // one for each element of `images`
};

struct Images {
  std::int64_t pixels = 0;           // per image
  std::int64_t total = 0;            // images of all shares of the part
  std::int64_t classes = 0;          // largest label of all images, plus 1
  std::vector<std::uint8_t> values;  // pixels of the share's images, one after the other
  std::vector<std::uint8_t> labels;

  std::size_t size() const noexcept { return labels.size(); }
  std::span<const std::uint8_t> image(std::size_t i) const {
    const auto width = static_cast<std::size_t>(pixels);
    return std::span(values).subspan(i * width, width);
  }
};

/// Reads share `share` of `shares` (shares.hpp) of the images that `split` selects. Throws Error: not_found;
/// invalid_argument, with the file, for a file that is not IDX bytes, different numbers of images and labels,
/// or images of different sizes.
Images read_images(const ImageFiles& files, std::int64_t share, std::int64_t shares, Split split = {});

}  // namespace capstan::train
