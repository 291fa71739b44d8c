// readers.hpp -- datasets that come out of files: text, libsvm, CSV, Criteo, fixed-size records, IDX, HDF5.
//
// Files are read in turn, through a buffer, so none has to fit in memory; those of gzip are recognised and
// unpacked (not HDF5). A missing file is Error(not_found) from the iterator, a line that is not understood
// Error(invalid_argument) "train.txt:17: ...", a binary file that ends early Error(data_loss). A position
// holds where in which file; in a gzip file going back to it unpacks what is before it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/data/batch_of.hpp"
#include "capstan/dataset.hpp"
#include "capstan/export.hpp"

namespace capstan {

/// Lines without their ends (LF or CRLF); empty ones too.
CAPSTAN_API Dataset<std::string> text_lines(data::Paths files);

/// One line of libsvm text: `label id:value id:value ...`.
struct SparseExample {
  float label = 0;
  std::vector<std::int64_t> ids;
  std::vector<float> values;
  friend bool operator==(const SparseExample&, const SparseExample&) = default;
};

/// Many of them: example i has ids[offsets[i]] to ids[offsets[i + 1] - 1], and the values beside them.
struct SparseBatch {
  std::vector<float> labels;
  std::vector<std::int64_t> offsets{0};  ///< one more than labels
  std::vector<std::int64_t> ids;
  std::vector<float> values;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(labels.size()); }
  friend bool operator==(const SparseBatch&, const SparseBatch&) = default;
};

template <>
struct CAPSTAN_API BatchOf<SparseBatch> {
  static std::int64_t size(const SparseBatch& batch) { return batch.size(); }
  static SparseBatch slice(const SparseBatch& batch, std::int64_t from, std::int64_t to);
  static void append(SparseBatch& batch, SparseBatch part);
};

struct LibsvmOptions {
  /// The id of the first feature in the file; what is read begins at 0. The format says 1, many files have 0.
  std::int64_t first_id = 1;
  /// An id beyond that many features is an error; 0: any is taken.
  std::int64_t features = 0;
  /// For two classes: labels other than 0, 1, -1 and +1 are an error, and -1 is read as 0; NaN and infinity
  /// are errors as values.
  bool two_classes = false;
};

/// Blank lines and what follows a # are left out.
CAPSTAN_API Dataset<SparseExample> libsvm(data::Paths files, LibsvmOptions options = {});
/// `size` examples at a time, across the ends of files: twice as fast as single examples that are batched.
CAPSTAN_API Dataset<SparseBatch> libsvm_batches(data::Paths files, std::int64_t size,
                                                LibsvmOptions options = {}, bool drop_remainder = false);

struct SeparatedOptions {
  char separator = ',';
  /// Fields may stand in these, and then hold separators, line ends, and doubled ones for themselves; '\0':
  /// no field does.
  char quote = '"';
  /// The first record of each file names the columns and is left out.
  bool header = false;
  /// Fields a record; 0: as many as the first of the file has.
  std::int64_t columns = 0;
};
inline constexpr SeparatedOptions kTabSeparated{.separator = '\t', .quote = '\0'};

/// The fields of each record; blank lines are left out.
CAPSTAN_API Dataset<std::vector<std::string>> separated(data::Paths files, SeparatedOptions options = {});

/// One line of Criteo's click logs: label, 13 integers, 26 categories of up to 8 hexadecimal digits, between
/// tabs. A field that is missing is 0, and its bit is not set. The label is 0 or 1.
struct CriteoExample {
  static constexpr std::size_t kIntegers = 13;
  static constexpr std::size_t kCategories = 26;
  float label = 0;
  std::uint32_t integers_present = 0;    ///< bit i: integers[i] was there
  std::uint32_t categories_present = 0;  ///< bit i: categories[i] was there
  std::array<std::int64_t, kIntegers> integers{};
  std::array<std::uint32_t, kCategories> categories{};
  friend bool operator==(const CriteoExample&, const CriteoExample&) = default;
};
/// `has_label` is false for the days that were to be predicted.
CAPSTAN_API Dataset<CriteoExample> criteo(data::Paths files, bool has_label = true);

struct RecordOptions {
  std::int64_t header_bytes = 0;  ///< before the first record of a file
  std::int64_t footer_bytes = 0;  ///< behind the last
};
/// Records of `record_bytes` bytes each. A file whose rest is no whole record is Error(data_loss).
CAPSTAN_API Dataset<std::vector<std::byte>> fixed_records(data::Paths files, std::int64_t record_bytes,
                                                          RecordOptions options = {});

/// The items of IDX files (MNIST): an image has the shape (28, 28), a label (). T must be the file's type:
/// std::uint8_t, std::int8_t, std::int16_t, std::int32_t, float or double.
template <class T>
CAPSTAN_API Dataset<Array<T>> idx(data::Paths files);

/// The rows of a dataset in HDF5 files, as arrays of one dimension less. T is float, double, std::uint8_t,
/// std::int32_t or std::int64_t, whatever numbers the file holds: they are converted.
template <class T>
CAPSTAN_API Dataset<Array<T>> hdf5_rows(data::Paths files, std::string name);

}  // namespace capstan
