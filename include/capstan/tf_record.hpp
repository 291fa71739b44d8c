// tf_record.hpp -- TFRecord files: a reader as a dataset, and a writer.
//
// A record is its length (8 bytes), the masked CRC-32C of these, its bytes, and their masked CRC-32C, all
// little-endian. What the bytes mean (tf.train.Example, say) is up to the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "capstan/dataset.hpp"
#include "capstan/export.hpp"

namespace capstan {

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
