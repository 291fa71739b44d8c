// example_selector.hpp -- which examples of files a worker keeps: its share of the training or of the
// validation examples.
#pragma once

#include <algorithm>
#include <cstdint>

#include "train/counter_rng.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

/// Division of the examples of --data into training and validation examples.
struct Split {
  double valid_fraction = 0;  // expected fraction of validation examples
  bool valid = false;         // selects them, and not the others
  /// Raises the fraction to 40 / i for the i-th example, but to 0.2 at most, so that small data has enough
  /// validation examples: about 40 of 200, 100 of 1,000, 130 of 2,000.
  bool more_of_first = false;
};

/// The split by which `part` is read from its files (PartFiles). Only --data is divided, by a fraction above
/// 0; otherwise all examples of the files are selected.
inline Split split_of(Part part, const PartFiles& files) {
  if (part == Part::test || files.valid_fraction == 0) return {};
  return {files.valid_fraction, part == Part::valid, files.more_of_first};
}

/// Call next() for each example of the files, in order. Whether example i validates depends on i alone, so
/// all workers and runs divide the data alike.
class ExampleSelector {
 public:
  ExampleSelector(std::int64_t share, std::int64_t shares, Split split)
      : share_(share), shares_(shares), split_(split) {}

  /// Returns true if the next example is in the selected part and share.
  bool next() {
    const bool selected = is_valid(seen_++) == split_.valid;
    return selected && total_++ % shares_ == share_;
  }
  std::int64_t seen() const noexcept { return seen_; }
  /// Number of examples in the selected part, in all shares.
  std::int64_t total() const noexcept { return total_; }

 private:
  bool is_valid(std::int64_t example) const {
    constexpr CounterRng kRandom(0, 0);
    const double raised = std::min(0.2, 40 / static_cast<double>(example + 1));
    const double fraction =
        split_.more_of_first ? std::max(split_.valid_fraction, raised) : split_.valid_fraction;
    return static_cast<double>(kRandom.bits(static_cast<std::uint64_t>(example))) < fraction * 0x1p64;
  }

  std::int64_t share_, shares_;
  Split split_;
  std::int64_t seen_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace capstan::train
