// examples.cpp -- conversion of libsvm, Criteo and CSV text to slots.
#include "train/sparse/examples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "capstan/error.hpp"
#include "capstan/readers.hpp"
#include "train/sparse/columns.hpp"
#include "train/sparse/csv.hpp"

namespace capstan::train {
namespace {

/// The bucket of a missing integer of Criteo: bucket_of() never returns it.
constexpr std::int64_t kMissingBucket = 1 << 16;
/// The column of a missing category, in place of the column that it has otherwise.
constexpr std::size_t kMissingColumns = CriteoExample::kCategories + CriteoExample::kIntegers;
constexpr std::int64_t kReadBatch = 4096;

/// Collects the examples of one share. Slots are numbered by first occurrence, and by row after finish().
class ShareBuilder {
 public:
  explicit ShareBuilder(const ExampleSelector& selector) : selector_(selector) {}

  /// Starts an example; returns false if it is not selected.
  bool begin(float label) {
    if (!selector_.next()) return false;
    file_.examples.labels.push_back(label > 0 ? 1 : 0);
    return true;
  }
  void feature(std::int64_t row, float value) {
    SparseExamples& examples = file_.examples;
    const auto [at, inserted] = slots_.emplace(row, static_cast<std::uint32_t>(examples.ids.size()));
    if (inserted) examples.ids.push_back(row);
    examples.slots.push_back(at->second);
    examples.values.push_back(value);
  }
  void dense(float value) { file_.examples.dense.push_back(value); }
  void end() { file_.examples.offsets.push_back(file_.examples.slots.size()); }
  void see_row(std::int64_t row) { file_.rows = std::max(file_.rows, row + 1); }

  bool has_seen_examples() const { return selector_.seen() > 0; }
  SparseFile finish() {
    SparseExamples& examples = file_.examples;
    std::vector<std::int64_t> sorted = examples.ids;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::uint32_t> new_slots(sorted.size());
    for (std::size_t slot = 0; slot < sorted.size(); ++slot) {
      new_slots[slots_.at(sorted[slot])] = static_cast<std::uint32_t>(slot);
    }
    for (std::uint32_t& slot : examples.slots) slot = new_slots[slot];
    examples.ids = std::move(sorted);
    examples.unit_values =
        std::all_of(examples.values.begin(), examples.values.end(), [](float x) { return x == 1; });
    file_.total = selector_.total();
    return std::move(file_);
  }

 private:
  ExampleSelector selector_;
  std::unordered_map<std::int64_t, std::uint32_t> slots_;
  SparseFile file_;
};

void read_libsvm(const std::vector<std::filesystem::path>& files, const SparseFormat& format,
                 ShareBuilder& builder) {
  const LibsvmOptions options{.first_id = 0, .features = format.features, .two_classes = true};
  for (const SparseBatch& batch : libsvm_batches(files, kReadBatch, options)) {
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      const auto first = static_cast<std::size_t>(batch.offsets[i]);
      const auto end = static_cast<std::size_t>(batch.offsets[i + 1]);
      for (std::size_t k = first; k < end; ++k) builder.see_row(batch.ids[k]);
      if (!builder.begin(batch.labels[i])) continue;
      for (std::size_t k = first; k < end; ++k) builder.feature(batch.ids[k], batch.values[k]);
      builder.end();
    }
  }
}

/// Maps the hash of a feature to its row.
class HashedRow {
 public:
  explicit HashedRow(const SparseFormat& format)
      : mask_(format.dynamic ? ~std::uint64_t{0} : (std::uint64_t{1} << format.hash_bits) - 1) {}
  std::int64_t operator()(std::uint64_t hash) const { return static_cast<std::int64_t>(hash & mask_); }

 private:
  std::uint64_t mask_;
};

float dense_value(std::int64_t integer) {
  const auto x = static_cast<float>(integer);
  return std::copysign(std::log1p(std::abs(x)), x);
}

void read_criteo(const std::vector<std::filesystem::path>& files, const SparseFormat& format,
                 ShareBuilder& builder) {
  const HashedRow row(format);
  for (const CriteoExample& example : criteo(files)) {
    if (!builder.begin(example.label)) continue;
    for (std::size_t i = 0; i < CriteoExample::kIntegers; ++i) {
      const bool present = (example.integers_present >> i & 1) != 0;
      const std::int64_t bucket = present ? bucket_of(example.integers[i]) : kMissingBucket;
      builder.feature(row(category_hash(CriteoExample::kCategories + i, static_cast<std::uint32_t>(bucket))),
                      1);
      if (format.fields) builder.dense(present ? dense_value(example.integers[i]) : 0);
    }
    for (std::size_t i = 0; i < CriteoExample::kCategories; ++i) {
      const bool present = (example.categories_present >> i & 1) != 0;
      if (present) {
        builder.feature(row(category_hash(i, example.categories[i])), 1);
      } else if (format.fields) {
        builder.feature(row(category_hash(kMissingColumns + i, 0)), 1);
      }
    }
    builder.end();
  }
}

void read_csv(const std::vector<std::filesystem::path>& files, const SparseFormat& format,
              ShareBuilder& builder) {
  const HashedRow row(format);
  for (const std::filesystem::path& file : files) {
    CsvReader reader(file, format.schema);
    while (reader.next()) {
      if (!builder.begin(reader.label() ? 1 : 0)) continue;
      for (const std::uint64_t hash : reader.features()) builder.feature(row(hash), 1);
      builder.end();
    }
  }
}

/// Examples between the one that is cut and the one whose slots are prefetched: examples of a batch are in
/// random places of the memory.
constexpr std::size_t kExamplesAhead = 4;

void prefetch_slots(const SparseExamples& examples, std::uint32_t example) {
  constexpr std::uint64_t kLineSlots = 64 / sizeof(std::uint32_t);
  for (std::uint64_t k = examples.offsets[example]; k < examples.offsets[example + 1]; k += kLineSlots) {
    __builtin_prefetch(examples.slots.data() + k);
  }
}

void read_files(const std::vector<std::filesystem::path>& files, const SparseFormat& format,
                ShareBuilder& builder) {
  if (format.format == "libsvm") return read_libsvm(files, format, builder);
  if (!format.dynamic) builder.see_row(format.rows() - 1);
  (format.format == "csv" ? read_csv : read_criteo)(files, format, builder);
}

}  // namespace

std::int64_t SparseFormat::rows() const {
  if (dynamic) return 0;
  return format == "libsvm" ? features : std::int64_t{1} << hash_bits;
}

SparseFile read_share(const std::vector<std::filesystem::path>& files, const SparseFormat& format,
                      std::int64_t share, std::int64_t shares, Split split) {
  ShareBuilder builder(ExampleSelector(share, shares, split));
  try {
    read_files(files, format, builder);
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument && error.code() != Code::data_loss) throw;
    // A truncated file is invalid input here, not a damaged checkpoint.
    throw Error(Code::invalid_argument, fmt::format("{} (--format {})", error.what(), format.format));
  }
  if (!builder.has_seen_examples()) {
    throw Error(Code::invalid_argument, files.front().string() + " has no examples, expected at least one");
  }
  return builder.finish();
}

std::vector<std::int32_t> occurrences(const SparseExamples& examples) {
  std::vector<std::int32_t> counts(examples.ids.size());
  for (const std::uint32_t slot : examples.slots) ++counts[slot];
  return counts;
}

void BatchCutter::cut(std::span<const std::uint32_t> chosen, SparseExamples& batch) {
  const std::size_t dense = from_->size() == 0 ? 0 : from_->dense.size() / from_->size();
  batch.labels.clear();
  batch.offsets.assign(1, 0);
  batch.dense.clear();
  for (const std::uint32_t example : chosen) {
    batch.labels.push_back(from_->labels[example]);
    batch.offsets.push_back(batch.offsets.back() + from_->offsets[example + 1] - from_->offsets[example]);
    const auto numbers = std::span(from_->dense).subspan(example * dense, dense);
    batch.dense.insert(batch.dense.end(), numbers.begin(), numbers.end());
  }
  batch.slots.resize(batch.offsets.back());
  batch.unit_values = from_->unit_values;
  batch.values.resize(batch.unit_values ? 0 : batch.offsets.back());
  used_.resize(batch.offsets.back());
  // Without a branch for new slots: half of the features may be new, in no order that a CPU could predict.
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (i + kExamplesAhead < chosen.size()) prefetch_slots(*from_, chosen[i + kExamplesAhead]);
    const std::uint64_t first = from_->offsets[chosen[i]], size = batch.offsets[i + 1] - batch.offsets[i];
    const std::uint32_t* from = from_->slots.data() + first;
    std::uint32_t* slots = batch.slots.data() + batch.offsets[i];
    for (std::uint64_t k = 0; k < size; ++k) {
      std::uint32_t& slot = slot_of_[from[k]];
      const bool is_new = slot == kNone;
      used_[count] = from[k];
      slots[k] = slot = is_new ? count : slot;
      count += is_new ? 1 : 0;
    }
    if (!batch.unit_values) {
      std::copy_n(from_->values.data() + first, size, batch.values.data() + batch.offsets[i]);
    }
  }
  batch.ids.resize(count);
  batch.rarity.resize(from_->rarity.empty() ? 0 : count);
  for (std::uint32_t slot = 0; slot < count; ++slot) {
    batch.ids[slot] = from_->ids[used_[slot]];
    slot_of_[used_[slot]] = kNone;
  }
  for (std::size_t slot = 0; slot < batch.rarity.size(); ++slot) {
    batch.rarity[slot] = from_->rarity[used_[slot]];
  }
}

}  // namespace capstan::train
