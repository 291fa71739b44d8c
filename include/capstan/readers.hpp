// readers.hpp -- datasets that come out of files: text, libsvm, CSV, Criteo, fixed-size records, IDX, HDF5,
// TFRecord.
//
// Files are read in turn, through a buffer, so none has to fit in memory; those of gzip are recognised and
// unpacked (not HDF5). A missing file is Error(not_found) from the iterator, a line that is not understood
// Error(invalid_argument) "train.txt:17: ...", a binary file that ends early Error(data_loss). A position
// holds where in which file; in a gzip file going back to it unpacks what is before it.
//
// A TFRecord is its length (8 bytes), the masked CRC-32C of these, its bytes, and their masked CRC-32C, all
// little-endian. What the bytes mean (tf.train.Example, say) is up to the program.
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

enum class TFRecordCompression : std::uint8_t {
  automatic,  ///< reading: gzip where a file is gzip, else none; writing: none
  none,
  gzip,
  zlib,
};

/// The records of the files in turn. Every checksum is verified.
///
/// Errors name the file and the byte at which the record begins, after unpacking. Throws from the iterator:
/// data_loss for a record whose bytes do not have their checksum, once, and the next record follows;
/// data_loss for a damaged length and for a file that ends within a record, every time, since what follows
/// cannot be found; not_found for a missing file. A position holds that byte; in a packed file going back to
/// it unpacks all that is before it.
CAPSTAN_API Dataset<std::vector<std::byte>> tf_records(
    data::Paths files, TFRecordCompression compression = TFRecordCompression::automatic);

struct TFRecordWriterOptions {
  TFRecordCompression compression = TFRecordCompression::automatic;
  /// A file of this name is replaced; without it that is Error(already_exists).
  bool replace = false;
};

/// Writes one file, which has its name once `close` has returned and does not exist before; a writer that is
/// destroyed without it leaves nothing. One thread at a time.
class CAPSTAN_API TFRecordWriter {
 public:
  /// Throws Error: already_exists, not_found (no such directory), permission_denied.
  explicit TFRecordWriter(std::filesystem::path path, TFRecordWriterOptions options = {});
  ~TFRecordWriter();
  TFRecordWriter(TFRecordWriter&&) noexcept;
  TFRecordWriter& operator=(TFRecordWriter&&) = delete;

  /// Throws Error: resource_exhausted for a full disk; failed_precondition after `close`.
  void write(std::span<const std::byte> record);
  void write(std::string_view record);
  /// Makes the file durable and gives it its name. Throws as `write` does.
  void close();

 private:
  class Output;
  std::unique_ptr<Output> output_;
};

}  // namespace capstan
