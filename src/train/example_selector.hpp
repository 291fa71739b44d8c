// example_selector.hpp -- which examples of files a worker keeps: its share of the training or of the
// validation examples.
#pragma once

#include <cstdint>

#include "train/counter_rng.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

/// Division of the examples of --data into training and validation examples.
struct Split {
  double valid_fraction = 0;  // expected fraction of validation examples
  bool valid = false;         // selects them, and not the others
};

/// The split by which `part` is read from its files (PartFiles). Only --data is divided, by a fraction above
/// 0; otherwise all examples of the files are selected.
constexpr Split split_of(Part part, double valid_fraction) {
  return part == Part::test || valid_fraction == 0 ? Split{} : Split{valid_fraction, part == Part::valid};
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
    return static_cast<double>(kRandom.bits(static_cast<std::uint64_t>(example))) <
           split_.valid_fraction * 0x1p64;
  }

  std::int64_t share_, shares_;
  Split split_;
  std::int64_t seen_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace capstan::train
