// images.cpp -- reads image and label files in parallel.
#include "train/mlp/images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "capstan/error.hpp"
#include "capstan/readers.hpp"

namespace capstan::train {
namespace {

using Item = std::optional<Array<std::uint8_t>>;

/// Throws the error for two files with different numbers of images and labels.
[[noreturn]] void throw_length_mismatch(const std::filesystem::path& images,
                                        const std::filesystem::path& labels, std::int64_t both,
                                        Iterator<Array<std::uint8_t>>& longer, bool images_longer) {
  std::int64_t excess = 1;
  while (longer.try_next()) ++excess;
  throw Error(
      Code::invalid_argument,
      fmt::format("{} has {} images and {} has {} labels: expected one label for each image", images.string(),
                  both + (images_longer ? excess : 0), labels.string(), both + (images_longer ? 0 : excess)));
}

void read_pair(const std::filesystem::path& image_file, const std::filesystem::path& label_file,
               ExampleSelector& selector, Images& out) {
  auto images = idx<std::uint8_t>({image_file}).make_iterator();
  auto labels = idx<std::uint8_t>({label_file}).make_iterator();
  for (std::int64_t number = 0;; ++number) {
    const Item image = images.try_next(), label = labels.try_next();
    if (!image && !label) return;
    if (!image || !label)
      throw_length_mismatch(image_file, label_file, number, image ? images : labels, image.has_value());
    if (label->size() != 1) {
      throw Error(
          Code::invalid_argument,
          fmt::format("{}: an item has {} values, expected labels of one value (are images and labels "
                      "swapped?)",
                      label_file.string(), label->size()));
    }
    const auto pixels = static_cast<std::int64_t>(image->size());
    if (out.pixels == 0) out.pixels = pixels;
    if (pixels != out.pixels) {
      throw Error(Code::invalid_argument, fmt::format("{}: an image has {} pixels, expected {} as before",
                                                      image_file.string(), pixels, out.pixels));
    }
    out.classes = std::max<std::int64_t>(out.classes, label->values[0] + 1);
    if (!selector.next()) continue;
    out.values.insert(out.values.end(), image->values.begin(), image->values.end());
    out.labels.push_back(label->values[0]);
  }
}

}  // namespace

Images read_images(const ImageFiles& files, std::int64_t share, std::int64_t shares, Split split) {
  Images out;
  ExampleSelector selector(share, shares, split);
  try {
    for (std::size_t i = 0; i < files.images.size(); ++i) {
      read_pair(files.images[i], files.labels.at(i), selector, out);
    }
  } catch (const Error& error) {
    if (error.code() != Code::data_loss) throw;
    throw Error(Code::invalid_argument, error.what());  // invalid input, not a damaged checkpoint
  }
  out.total = selector.total();
  if (selector.seen() == 0) {
    throw Error(Code::invalid_argument,
                files.images.front().string() + " has no images, expected at least one");
  }
  return out;
}

}  // namespace capstan::train
