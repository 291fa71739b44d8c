// line_reader.cpp -- lines are views into a buffer, which is refilled when it holds no complete line.
#include "io/data/line_reader.hpp"

#include <fmt/format.h>

#include <cstring>

namespace capstan::io {
namespace {

constexpr std::size_t kBufferBytes = 256 * 1024;  // stays in the L2 cache between read and parse
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

LineReader::LineReader(const std::filesystem::path& path) : stream_(path), buffer_(kBufferBytes) {}

bool LineReader::next(std::string_view& line) {
  std::size_t searched = begin_;
  const char* newline = nullptr;
  while (true) {
    newline = static_cast<const char*>(std::memchr(buffer_.data() + searched, '\n', end_ - searched));
    if (newline != nullptr || ended_) break;
    searched = end_ - begin_;  // fill() moves the unread bytes to the front
    if (!fill()) ended_ = true;
  }
  if (newline == nullptr && begin_ == end_) return false;
  const char* first = buffer_.data() + begin_;
  const char* last = newline != nullptr ? newline : buffer_.data() + end_;
  begin_ = static_cast<std::size_t>(last - buffer_.data()) + (newline != nullptr ? 1 : 0);
  line = {first, static_cast<std::size_t>(last - first)};
  if (line_++ == 0 && from_ == 0 && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
    if (line.empty() && newline == nullptr) return false;  // the file has only the mark
  }
  carriage_return_ = line.ends_with('\r');
  if (carriage_return_) line.remove_suffix(1);
  return true;
}

bool LineReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  const std::size_t got = stream_.read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  return got > 0;
}

std::string LineReader::location() const {
  if (from_ == 0) return fmt::format("{}:{}", stream_.path().string(), line_);
  return fmt::format("{}: line {} from byte {}", stream_.path().string(), line_, from_);
}

void LineReader::skip_to(std::uint64_t offset) {
  if (stream_.is_compressed()) {
    throw Error(Code::invalid_argument,
                stream_.path().string() + ": a gzip file cannot be split; read it as one split");
  }
  seek(offset, 0);
  from_ = offset;
}

void LineReader::throw_error(const std::string& fault) const {
  throw Error(Code::invalid_argument, fmt::format("{}: {}", location(), fault));
}

void LineReader::write_position(Writer& out) const {
  capstan::write(out, offset());
  capstan::write(out, line_);
}

void LineReader::read_position(Reader& in) {
  const auto offset = capstan::read<std::uint64_t>(in);
  seek(offset, capstan::read<std::uint64_t>(in));
}

void LineReader::seek(std::uint64_t offset, std::uint64_t line) {
  stream_.seek(offset);
  begin_ = end_ = 0;
  line_ = line;
  ended_ = false;
}

}  // namespace capstan::io
