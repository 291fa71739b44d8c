// examples.hpp -- sparse examples: a share of the input files, and batches cut from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "train/example_selector.hpp"
#include "train/sparse/csv.hpp"

namespace capstan::train {

/// Example i has the features offsets[i] to offsets[i + 1] - 1: value values[k] of row ids[slots[k]] of the
/// table.
struct SparseExamples {
  std::vector<std::uint8_t> labels = {};  // 0 or 1
  std::vector<std::uint64_t> offsets = {0};
  std::vector<std::uint32_t> slots = {};
  std::vector<float> values = {};
  /// True: all values are 1, and batches that are cut from the examples have no `values`.
  bool unit_values = false;
  std::vector<std::int64_t> ids = {};  // unique rows of the table; ascending in a complete share
  /// With SparseFormat::fields: for each integer x of each example sign(x) log(1 + |x|), or 0 if it is
  /// missing. Each example then has one feature for each integer and category, in this order.
  std::vector<float> dense = {};
  /// By slot: number of training examples divided by the number of occurrences of the feature. Each
  /// occurrence adds the L2 penalty on the row with this weight, which makes one penalty per example on
  /// average. Empty without a penalty.
  std::vector<float> rarity = {};

  std::size_t size() const noexcept { return labels.size(); }
};

/// Format of the input files, and mapping of their features to rows of the table.
struct SparseFormat {
  std::string format = {};     // "libsvm", "criteo" or "csv"
  std::int64_t features = 0;   // bound of libsvm ids, which start at 0; 0: no bound
  std::int64_t hash_bits = 0;  // criteo, csv: features are hashed into 2^hash_bits rows
  bool dynamic = false;        // criteo, csv: a row is a 64-bit hash, the key of a dynamic table
  CsvSchema schema = {};       // csv
  bool fields = false;         // criteo: fill SparseExamples::dense

  /// Returns the number of rows of the table if the format determines it: by `hash_bits` or `features`.
  /// Returns 0 if it depends on the files, and for dynamic tables.
  std::int64_t rows() const;
};

struct SparseFile {
  SparseExamples examples;  // examples of the share
  std::int64_t total = 0;   // examples of all shares of the part
  std::int64_t rows = 0;    // largest row of all examples, plus 1
};

/// Reads share `share` of `shares` (shares.hpp) of the examples that `split` selects. A libsvm id is its row.
/// A category or the bucket of an integer (columns.hpp) is a feature of value 1 in a row that its hash
/// selects. A missing integer is a feature too; a missing category is skipped, or is a feature with `fields`.
/// Throws Error: not_found, invalid_argument
/// "file:line: ...".
SparseFile read_share(const std::vector<std::filesystem::path>& files, const SparseFormat& format,
                      std::int64_t share, std::int64_t shares, Split split = {});

/// Number of occurrences of each slot.
std::vector<std::int32_t> occurrences(const SparseExamples& examples);

/// Cuts batches from `from`, which must outlive it. Keeps its buffers between batches; used by one thread at
/// a time.
class BatchCutter {
 public:
  explicit BatchCutter(const SparseExamples& from) : from_(&from), slot_of_(from.ids.size(), kNone) {}
  /// Sets `batch` to the examples `chosen`, with only the rows that they use.
  void cut(std::span<const std::uint32_t> chosen, SparseExamples& batch);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  const SparseExamples* from_;
  std::vector<std::uint32_t> slot_of_;  // slot in the batch by slot in `from`
  std::vector<std::uint32_t> used_;     // slot in `from` by slot in the batch
};

}  // namespace capstan::train
