// images.hpp -- a share of images and their labels, from IDX files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace capstan::train {

struct ImageFiles {
  std::vector<std::filesystem::path> images;
  std::vector<std::filesystem::path> labels;  // one for each file of images
};

struct Images {
  std::int64_t pixels = 0;           // of an image
  std::int64_t total = 0;            // of all shares
  std::int64_t classes = 0;          // the largest label of all shares, and 1
  std::vector<std::uint8_t> values;  // of the share, image by image
  std::vector<std::uint8_t> labels;

  std::size_t size() const noexcept { return labels.size(); }
  std::span<const std::uint8_t> image(std::size_t i) const {
    const auto width = static_cast<std::size_t>(pixels);
    return std::span(values).subspan(i * width, width);
  }
};

/// Share `share` of `shares` (shares.hpp). Throws Error: not_found, invalid_argument naming the file for what
/// is no IDX file of bytes, numbers of images and labels that differ, images of different sizes.
Images read_images(const ImageFiles& files, std::int64_t share, std::int64_t shares);

}  // namespace capstan::train
