// tf_record.cpp -- buffered reads and writes of TFRecord files.
#include "capstan/readers.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "io/data/byte_stream.hpp"
#include "io/events/crc32c.hpp"
#include "io/events/event_file.hpp"
#include "io/output_file.hpp"

namespace capstan {
namespace {

using Record = std::vector<std::byte>;

constexpr std::size_t kBufferBytes = 256 * 1024;
constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);
constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t);
using Header = std::array<char, kLengthBytes + kChecksumBytes>;

template <class T>
T number_at(const char* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

std::uint32_t checksum_of(std::string_view bytes) { return io::masked(io::crc32c(bytes)); }

bool has_checksum(const Header& head) {
  return number_at<std::uint32_t>(head.data() + kLengthBytes) == checksum_of({head.data(), kLengthBytes});
}

/// For `automatic`: if the first record's length has a valid checksum, the file is uncompressed even if it
/// starts with gzip's magic.
io::Compression compression_of(const std::filesystem::path& path, TFRecordCompression given) {
  switch (given) {
    case TFRecordCompression::none:
      return io::Compression::none;
    case TFRecordCompression::gzip:
      return io::Compression::gzip;
    case TFRecordCompression::zlib:
      return io::Compression::zlib;
    case TFRecordCompression::automatic:
      break;
  }
  io::ByteStream plain(path, io::Compression::none);
  Header head{};
  std::size_t got = 0;
  while (got < head.size()) {
    const std::size_t more = plain.read(head.data() + got, head.size() - got);
    if (more == 0) break;
    got += more;
  }
  return got == head.size() && has_checksum(head) ? io::Compression::none : io::Compression::detect;
}

/// Cursor of one file.
class RecordCursor final : public data::Cursor<Record> {
 public:
  RecordCursor(const std::filesystem::path& path, TFRecordCompression compression)
      : stream_(path, compression_of(path, compression)), buffer_(kBufferBytes) {}

  std::optional<Record> next() override {
    const std::uint64_t start = offset();
    try {
      return next_record(start);
    } catch (const Error&) {
      if (!found_end_) seek(start);  // the next record's offset is unknown: the next call fails again
      throw;
    }
  }
  void rewind() override { seek(0); }

 private:
  std::optional<Record> next_record(std::uint64_t start) {
    found_end_ = false;
    Header head{};
    const std::size_t got = read(head.data(), head.size());
    if (got == 0) return std::nullopt;
    if (got < head.size()) ends_early(start, "header", got, head.size());
    if (!has_checksum(head)) {
      damaged(start, fmt::format("the length {}", number_at<std::uint64_t>(head.data())),
              number_at<std::uint32_t>(head.data() + kLengthBytes), checksum_of({head.data(), kLengthBytes}));
    }
    const auto length = number_at<std::uint64_t>(head.data());
    Record record = read_bytes(start, length);
    std::array<char, kChecksumBytes> foot{};
    if (const std::size_t bytes = read(foot.data(), foot.size()); bytes < foot.size()) {
      ends_early(start, "checksum", bytes, foot.size());
    }
    found_end_ = true;
    const std::uint32_t computed = checksum_of({reinterpret_cast<const char*>(record.data()), record.size()});
    if (const auto stored = number_at<std::uint32_t>(foot.data()); stored != computed) {
      damaged(start, fmt::format("{} bytes", length), stored, computed);
    }
    return record;
  }

  /// Allocates in steps as the file is read, so that a wrong length cannot exhaust memory.
  Record read_bytes(std::uint64_t start, std::uint64_t length) {
    Record record;
    while (record.size() < length) {
      const std::size_t had = record.size();
      record.resize(had + std::min<std::uint64_t>(length - had, std::max(had, kBufferBytes)));
      const std::size_t got = read(reinterpret_cast<char*>(record.data()) + had, record.size() - had);
      if (got < record.size() - had) ends_early(start, "bytes", had + got, length);
    }
    return record;
  }

  /// Reads `bytes` bytes, or fewer at the end of the file.
  std::size_t read(char* out, std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      if (begin_ == end_) {
        begin_ = 0;
        end_ = stream_.read(buffer_.data(), buffer_.size());
        if (end_ == 0) break;
      }
      const std::size_t some = std::min(bytes - done, end_ - begin_);
      std::memcpy(out + done, buffer_.data() + begin_, some);
      begin_ += some;
      done += some;
    }
    return done;
  }

  [[noreturn]] void ends_early(std::uint64_t start, const char* what, std::uint64_t found,
                               std::uint64_t expected) const {
    throw Error(Code::data_loss,
                fmt::format("{}: the file ends within the record at byte {}: found {} bytes of its {}, "
                            "expected {}",
                            stream_.path().string(), start, found, what, expected));
  }
  [[noreturn]] void damaged(std::uint64_t start, const std::string& what, std::uint32_t stored,
                            std::uint32_t computed) const {
    throw Error(
        Code::data_loss,
        fmt::format("{}: the record at byte {} is damaged, or the file is not a TFRecord file: {} with "
                    "the checksum {:#010x}, expected {:#010x}",
                    stream_.path().string(), start, what, stored, computed));
  }

  std::uint64_t offset() const { return stream_.offset() - (end_ - begin_); }
  void seek(std::uint64_t offset) {
    stream_.seek(offset);
    begin_ = end_ = 0;
  }

  data::Kind kind() const noexcept override { return data::Kind::file; }
  void write_state(Writer& out) const override { capstan::write(out, offset()); }
  void read_state(Reader& in) override { seek(capstan::read<std::uint64_t>(in)); }

  io::ByteStream stream_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes of the buffer
  bool found_end_ = false;           // the end of the last record is known
};

}  // namespace

Dataset<std::vector<std::byte>> tf_records(data::Paths files, TFRecordCompression compression) {
  auto node = std::make_shared<data::FilesNode<Record>>(std::move(files), [compression](const auto& path) {
    return std::make_unique<RecordCursor>(path, compression);
  });
  return Dataset<Record>(detail::reader_with_recipe<&tf_records>(std::move(node), compression));
}

/// Buffers records and compresses them, if requested, one buffer at a time.
class TFRecordWriter::Output {
 public:
  Output(std::filesystem::path path, TFRecordWriterOptions options)
      : file_(std::move(path), options.replace),
        compresses_(options.compression == TFRecordCompression::gzip ||
                    options.compression == TFRecordCompression::zlib) {
    constexpr int kGzip = 16;  // added to windowBits: gzip instead of zlib format
    constexpr int kMemory = 8;
    const int window = MAX_WBITS + (options.compression == TFRecordCompression::gzip ? kGzip : 0);
    if (compresses_ && deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, kMemory,
                                    Z_DEFAULT_STRATEGY) != Z_OK) {
      throw call_failed("deflateInit2", file_.path().string(), Where::here(), Code::resource_exhausted);
    }
  }
  ~Output() {
    if (compresses_) (void)deflateEnd(&stream_);  // Z_DATA_ERROR: unfinished data is discarded
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view record) {
    if (closed_) {
      throw Error(Code::failed_precondition,
                  "cannot write a record: " + file_.path().string() + " is closed");
    }
    pending_ += io::record_of(record);
    if (pending_.size() >= kBufferBytes) flush(Z_NO_FLUSH);
  }
  void close() {
    if (closed_) return;
    flush(Z_FINISH);
    file_.publish();
    closed_ = true;
  }

 private:
  void flush(int mode) {
    if (!compresses_) {
      file_.append(pending_);
      pending_.clear();
      return;
    }
    std::vector<char> packed(kBufferBytes);
    std::string_view left = pending_;
    bool ended = false;
    while (!ended) {
      const std::string_view some = left.substr(0, std::size_t{1} << 30);  // zlib's sizes have 32 bits
      const bool is_last = some.size() == left.size();
      stream_.next_in =
          reinterpret_cast<Bytef*>(const_cast<char*>(some.data()));  // zlib does not write there
      stream_.avail_in = static_cast<uInt>(some.size());
      stream_.next_out = reinterpret_cast<Bytef*>(packed.data());
      stream_.avail_out = static_cast<uInt>(packed.size());
      const int answer = deflate(&stream_, is_last ? mode : Z_NO_FLUSH);
      if (answer != Z_OK && answer != Z_STREAM_END && answer != Z_BUF_ERROR) {
        throw call_failed("deflate", file_.path().string());
      }
      file_.append({packed.data(), packed.size() - stream_.avail_out});
      left.remove_prefix(some.size() - stream_.avail_in);
      ended = mode == Z_FINISH ? answer == Z_STREAM_END : left.empty() && stream_.avail_out > 0;
    }
    pending_.clear();
  }

  io::OutputFile file_;
  bool compresses_;
  bool closed_ = false;
  z_stream stream_{};
  std::string pending_;
};

TFRecordWriter::TFRecordWriter(std::filesystem::path path, TFRecordWriterOptions options)
    : output_(std::make_unique<Output>(std::move(path), options)) {}
TFRecordWriter::~TFRecordWriter() = default;
TFRecordWriter::TFRecordWriter(TFRecordWriter&&) noexcept = default;

void TFRecordWriter::write(std::string_view record) { output_->write(record); }
void TFRecordWriter::write(std::span<const std::byte> record) {
  output_->write({reinterpret_cast<const char*>(record.data()), record.size()});
}
void TFRecordWriter::close() { output_->close(); }

}  // namespace capstan
