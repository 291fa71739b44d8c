// readers.hpp -- datasets read from files: text, libsvm, CSV, hashed columns, Criteo, fixed-size records,
// IDX, HDF5, TFRecord.
//
// Files are read in order, through a buffer, so they need not fit in memory; gzip files are detected and
// unpacked (except HDF5). The iterator throws Error: not_found for a missing file, invalid_argument
// "train.txt:17: ..." for a malformed line, data_loss for a truncated binary file. A position is a file and
// an offset in it; in a gzip file, restoring it unpacks everything before it.
//
// A TFRecord is its length (8 bytes), the masked CRC-32C of the length, its bytes, and their masked CRC-32C,
// all little-endian. The program interprets the bytes (as a tf.train.Example, for instance).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/data/batch_of.hpp"
#include "capstan/dataset.hpp"
#include "capstan/detail/export.hpp"

namespace capstan {

/// Lines without their terminators (LF or CRLF), including empty lines.
CAPSTAN_API Dataset<std::string> text_lines(data::Paths files);

/// One line of libsvm text: `label id:value id:value ...`.
struct SparseExample {
  float label = 0;
  std::vector<std::int64_t> ids;
  std::vector<float> values;
  friend bool operator==(const SparseExample&, const SparseExample&) = default;
};

/// A batch of SparseExamples: example i has ids[offsets[i]] to ids[offsets[i + 1] - 1] and the values at the
/// same indices.
struct SparseBatch {
  std::vector<float> labels;
  std::vector<std::int64_t> offsets{0};  ///< one element more than labels
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
  /// Feature id in the file that becomes id 0: 1 according to the format, but 0 in many files.
  std::int64_t first_id = 1;
  /// Number of features; a larger id is an error. 0: not checked.
  std::int64_t features = 0;
  /// Binary classification: labels other than 0, 1, -1 and +1, and values that are NaN or infinity, are
  /// errors; -1 is read as 0.
  bool two_classes = false;
  /// Ids may be any texts without blanks and colons, and become hash_key(text, salt). `first_id` and
  /// `features` have no effect.
  bool hash_ids = false;
  std::uint64_t salt = 0;
};

/// Skips blank lines, and comments from # to the end of the line.
CAPSTAN_API Dataset<SparseExample> libsvm(data::Paths files, LibsvmOptions options = {});
/// Batches of `size` examples, across file boundaries: twice as fast as batching single examples.
CAPSTAN_API Dataset<SparseBatch> libsvm_batches(data::Paths files, std::int64_t size,
                                                LibsvmOptions options = {}, bool drop_remainder = false);

struct SeparatedOptions {
  char separator = ',';
  /// Quote character. Quoted fields may contain separators, line ends, and the quote itself, doubled. '\0':
  /// no quoting.
  char quote = '"';
  /// Skips the first record of each file, which names the columns.
  bool header = false;
  /// Fields per record; 0: the number in the file's first record.
  std::int64_t columns = 0;
};
inline constexpr SeparatedOptions kTabSeparated{.separator = '\t', .quote = '\0'};

/// The fields of each record. Skips blank lines.
CAPSTAN_API Dataset<std::vector<std::string>> separated(data::Paths files, SeparatedOptions options = {});

/// Columns of separated fields that become the features of a SparseExample. Columns are counted from 0.
struct HashedColumns {
  /// Column of the label, a number; -1: none, and labels are 0.
  std::int64_t label = 0;
  /// Columns with a number: the feature hash_key("", column), whose value is the number.
  std::vector<std::int64_t> numbers = {};
  /// Columns with a text: the feature hash_key(text, column), whose value is 1.
  std::vector<std::int64_t> categories = {};
  SeparatedOptions separated = {};
};
/// The columns of Criteo's click logs.
CAPSTAN_API HashedColumns criteo_columns();

/// An example for each record, whose ids are keys for a DynamicTable. Empty fields are left out.
CAPSTAN_API Dataset<SparseExample> hashed_columns(data::Paths files, HashedColumns columns);

/// One line of Criteo's click logs: a label of 0 or 1, 13 integers, 26 categories of up to 8 hexadecimal
/// digits, separated by tabs. For a missing field, the value is 0, and so is its bit in the `_present` mask.
struct CriteoExample {
  static constexpr std::size_t kIntegers = 13;
  static constexpr std::size_t kCategories = 26;
  float label = 0;
  std::uint32_t integers_present = 0;    ///< bit i: integers[i] is present
  std::uint32_t categories_present = 0;  ///< bit i: categories[i] is present
  std::array<std::int64_t, kIntegers> integers{};
  std::array<std::uint32_t, kCategories> categories{};
  friend bool operator==(const CriteoExample&, const CriteoExample&) = default;
};
/// `has_label` is false for test data, whose lines have no label.
CAPSTAN_API Dataset<CriteoExample> criteo(data::Paths files, bool has_label = true);

struct RecordOptions {
  std::int64_t header_bytes = 0;  ///< before the first record of a file
  std::int64_t footer_bytes = 0;  ///< after the last record of a file
};
/// Records of `record_bytes` bytes each. A file with an incomplete last record is Error(data_loss).
CAPSTAN_API Dataset<std::vector<std::byte>> fixed_records(data::Paths files, std::int64_t record_bytes,
                                                          RecordOptions options = {});

/// The items of IDX files (MNIST): an image has the shape (28, 28), a label the shape (). T must be the
/// file's type: std::uint8_t, std::int8_t, std::int16_t, std::int32_t, float or double.
template <class T>
CAPSTAN_API Dataset<Array<T>> idx(data::Paths files);

/// The rows of a dataset in HDF5 files, as arrays of one dimension less. T is float, double, std::uint8_t,
/// std::int32_t or std::int64_t; numbers of any type in the file are converted to T.
template <class T>
CAPSTAN_API Dataset<Array<T>> hdf5_rows(data::Paths files, std::string name);

enum class TFRecordCompression : std::uint8_t {
  automatic,  ///< reading: detects gzip, else none; writing: none
  none,
  gzip,
  zlib,
};

/// The records of the files in order. Every checksum is verified.
///
/// Errors name the file and the byte, after unpacking, at which the record begins. The iterator throws Error:
/// data_loss once for a record that does not match its checksum, and then continues with the next record;
/// data_loss at every call for a corrupt length or a truncated file, since the next record cannot be found;
/// not_found for a missing file. A position is a byte offset; in a compressed file, restoring it unpacks
/// everything before it.
CAPSTAN_API Dataset<std::vector<std::byte>> tf_records(
    data::Paths files, TFRecordCompression compression = TFRecordCompression::automatic);

struct TFRecordWriterOptions {
  TFRecordCompression compression = TFRecordCompression::automatic;
  /// Replaces an existing file of this name; false: Error(already_exists).
  bool replace = false;
};

/// Writes one file, which appears under its name when `close` returns, not before; a writer destroyed without
/// `close` leaves no file. One thread at a time.
class CAPSTAN_API TFRecordWriter {
 public:
  /// Throws Error: already_exists, not_found (no such directory), permission_denied.
  explicit TFRecordWriter(std::filesystem::path path, TFRecordWriterOptions options = {});
  ~TFRecordWriter();
  TFRecordWriter(TFRecordWriter&&) noexcept;
  TFRecordWriter& operator=(TFRecordWriter&&) = delete;

  /// Throws Error: resource_exhausted if the disk is full; failed_precondition after `close`.
  void write(std::span<const std::byte> record);
  void write(std::string_view record);
  /// Makes the file durable and moves it to its final name. Throws as `write` does.
  void close();

 private:
  class Output;
  std::unique_ptr<Output> output_;
};

}  // namespace capstan
