// examples.hpp -- examples of few features out of many: a share of the files, and batches cut from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace capstan::train {

/// Example i has the features offsets[i] to offsets[i + 1] - 1: value values[k] of row ids[slots[k]] of the
/// table.
struct SparseExamples {
  std::vector<std::uint8_t> labels = {};  // 0 or 1
  std::vector<std::uint64_t> offsets = {0};
  std::vector<std::uint32_t> slots = {};
  std::vector<float> values = {};
  std::vector<std::int64_t> ids = {};  // rows of the table, each once; of a whole share they ascend
  /// By slot: examples in the training data for each time that the feature occurs there. What a penalty on a
  /// row is weighed with, so that it counts once over all examples. May be empty.
  std::vector<float> rarity = {};

  std::size_t size() const noexcept { return labels.size(); }
};

/// What the files are, and which rows of the table their features have.
struct SparseFormat {
  std::string format = {};     // "libsvm" or "criteo"
  std::int64_t features = 0;   // rows that libsvm ids may have, from 0; 0: any
  std::int64_t hash_bits = 0;  // criteo: 2^hash_bits rows for categories, behind 13 for the integers

  /// Rows of the table where the files do not say: of criteo, or of `features`; else 0.
  std::int64_t rows() const;
};

struct SparseFile {
  SparseExamples examples;  // of the share
  std::int64_t total = 0;   // examples of all shares
  std::int64_t rows = 0;    // the largest row of all shares, and 1
};

/// Share `share` of `shares` of the files (shares.hpp). A libsvm id is its row. An integer of Criteo is a
/// feature of value sign(x) log(1 + |x|) in row 0 to 12, a category of value 1 in a row by its hash; what is
/// missing is no feature. Throws Error: not_found, invalid_argument "file:line: ...".
SparseFile read_share(const std::vector<std::filesystem::path>& files, const SparseFormat& format,
                      std::int64_t share, std::int64_t shares);

/// How often each slot occurs.
std::vector<std::int32_t> occurrences(const SparseExamples& examples);

/// Cuts batches, and keeps what that needs from batch to batch.
class BatchCutter {
 public:
  explicit BatchCutter(const SparseExamples& from) : from_(&from), slot_of_(from.ids.size(), kNone) {}
  /// The examples `which`, with only the rows that they have.
  void cut(std::span<const std::uint32_t> which, SparseExamples& batch);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  const SparseExamples* from_;
  std::vector<std::uint32_t> slot_of_;  // in the batch
};

}  // namespace capstan::train
