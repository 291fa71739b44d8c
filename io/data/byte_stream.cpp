// byte_stream.cpp -- large pread(2) calls, decompressed with zlib.
#include "io/data/byte_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace capstan::io {

struct ByteStream::Inflater {
  static constexpr std::size_t kInputBytes = 256 * 1024;

  Inflater(const std::filesystem::path& path, Compression compression)
      : format(compression), input(kInputBytes) {
    constexpr int kGzip = 16;  // added to windowBits: gzip instead of zlib format
    if (inflateInit2(&stream, MAX_WBITS + (format == Compression::gzip ? kGzip : 0)) != Z_OK) {
      throw call_failed("inflateInit2", path.string(), Where::here(), Code::resource_exhausted);
    }
  }
  ~Inflater() { (void)inflateEnd(&stream); }  // fails only for an invalid stream
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  const char* name() const { return format == Compression::gzip ? "gzip" : "zlib"; }

  /// Skips zeros after a member, which tapes and some tools add. Returns true if no input is left.
  bool skip_padding() {
    while (after_member && stream.avail_in > 0 && *stream.next_in == 0) {
      ++stream.next_in;
      --stream.avail_in;
    }
    return stream.avail_in == 0;
  }

  Compression format;
  z_stream stream{};
  std::vector<char> input;
  bool after_member = false;
  bool in_member = false;  // between the header of a member and its end
};

ByteStream::ByteStream(std::filesystem::path path, Compression compression)
    : path_(std::move(path)), file_(open_to_read(path_)) {
  ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);  // a hint; failure is harmless
  if (compression == Compression::detect) {
    std::array<unsigned char, 2> magic{};
    const bool is_gzip = read_file(reinterpret_cast<char*>(magic.data()), magic.size()) == magic.size() &&
                         magic[0] == 0x1f && magic[1] == 0x8b;
    file_offset_ = 0;
    compression = is_gzip ? Compression::gzip : Compression::none;
  }
  if (compression != Compression::none) inflater_ = std::make_unique<Inflater>(path_, compression);
}

ByteStream::~ByteStream() = default;
ByteStream::ByteStream(ByteStream&&) noexcept = default;

std::size_t ByteStream::read_file(char* out, std::size_t bytes) {
  while (true) {
    const ssize_t got =
        ::pread(file_.get(), out, std::min(bytes, kMaxCallBytes), static_cast<off_t>(file_offset_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_failed("read", path_, errno);
    file_offset_ += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
  }
}

std::size_t ByteStream::read(char* out, std::size_t bytes) {
  if (!inflater_) {
    const std::size_t got = read_file(out, bytes);
    offset_ += got;
    return got;
  }
  z_stream& stream = inflater_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(out);
  stream.avail_out = static_cast<uInt>(std::min<std::size_t>(bytes, std::size_t{1} << 30));
  const uInt wanted = stream.avail_out;
  while (stream.avail_out == wanted && wanted > 0) {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(read_file(inflater_->input.data(), inflater_->input.size()));
      stream.next_in = reinterpret_cast<Bytef*>(inflater_->input.data());
      if (stream.avail_in == 0) {
        if (!inflater_->in_member) break;
        throw Error(Code::data_loss, fmt::format("{} is truncated: it ends within its {} data",
                                                 path_.string(), inflater_->name()));
      }
    }
    if (!inflater_->in_member && inflater_->skip_padding()) continue;
    inflater_->in_member = true;
    const int answer = inflate(&stream, Z_NO_FLUSH);
    if (answer == Z_STREAM_END) {  // another member may follow
      inflater_->in_member = false;
      inflater_->after_member = true;
      (void)inflateReset(&stream);  // keeps the remaining input
    } else if (answer != Z_OK && answer != Z_BUF_ERROR) {
      throw Error(Code::data_loss,
                  fmt::format("{}: damaged {} data after byte {}: {}", path_.string(), inflater_->name(),
                              offset_, stream.msg != nullptr ? stream.msg : "no reason given"));
    }
  }
  const std::size_t got = wanted - stream.avail_out;
  offset_ += got;
  return got;
}

void ByteStream::read_exactly(char* out, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t got = read(out, bytes);
    if (got == 0) throw Error(Code::data_loss, fmt::format("{} ends at byte {}", path_.string(), offset_));
    out += got;
    bytes -= got;
  }
}

void ByteStream::seek(std::uint64_t offset) {
  if (!inflater_) {
    file_offset_ = offset_ = offset;
    return;
  }
  if (offset < offset_) {
    inflater_ = std::make_unique<Inflater>(path_, inflater_->format);
    file_offset_ = offset_ = 0;
  }
  std::vector<char> passed(std::min<std::uint64_t>(offset - offset_, Inflater::kInputBytes));
  while (offset_ < offset) {
    if (read(passed.data(), std::min<std::uint64_t>(passed.size(), offset - offset_)) == 0) return;
  }
}

}  // namespace capstan::io
