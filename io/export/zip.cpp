// zip.cpp -- the part of PKWARE's APPNOTE.TXT 6.3 for uncompressed members. Every member has the ZIP64
// fields, whatever its size, as numpy writes them.
#include "io/export/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/assert.hpp"

namespace capstan::io {
namespace {

constexpr std::uint32_t kLocalHead = 0x04034b50, kCentralHead = 0x02014b50, kEnd64 = 0x06064b50,
                        kEnd64Locator = 0x07064b50, kEnd = 0x06054b50;
constexpr std::uint16_t kVersion = 45;           // ZIP64
constexpr std::uint16_t kMadeOnUnix = 3 << 8;    // makes kMode effective
constexpr std::uint32_t kMode = 0100644U << 16;  // a regular file, rw-r--r--
constexpr std::uint16_t kUtf8 = 1 << 11;
constexpr std::uint16_t kStored = 0;
// Constant, 1 January 1980 (the ZIP epoch), so that the same arrays give the same file.
constexpr std::uint16_t kTime = 0;
constexpr std::uint16_t kDate = (1 << 5) | 1;
constexpr std::uint16_t kExtra64 = 1;
constexpr std::uint32_t kIn64 = 0xffffffff;  // the value is in the ZIP64 field
constexpr std::uint64_t kCrcInHead = 14;

/// Little-endian, without padding.
class Bytes {
 public:
  template <class... T>
  explicit Bytes(T... values) {
    (add(values), ...);
  }
  template <class T>
  void add(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) text_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

void ZipWriter::begin(const std::string& name, std::uint64_t bytes) {
  CAPSTAN_ASSERT(name.size() <= std::numeric_limits<std::uint16_t>::max());
  members_.push_back({name, bytes, to_.appended(), 0});
  written_ = 0;
  const Bytes extra(kExtra64, std::uint16_t{16}, bytes, bytes);
  const Bytes head(kLocalHead, kVersion, kUtf8, kStored, kTime, kDate, std::uint32_t{0}, kIn64, kIn64,
                   static_cast<std::uint16_t>(name.size()), static_cast<std::uint16_t>(extra.text().size()));
  to_.append(head.text() + name + extra.text());
}

void ZipWriter::write(std::string_view bytes) {
  Member& member = members_.back();
  written_ += bytes.size();
  to_.append(bytes);
  constexpr std::size_t kMaxCrcBytes = std::size_t{1} << 30;  // zlib's sizes have 32 bits
  while (!bytes.empty()) {
    const std::size_t now = std::min(bytes.size(), kMaxCrcBytes);
    member.crc = static_cast<std::uint32_t>(
        ::crc32(member.crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(now)));
    bytes.remove_prefix(now);
  }
}

void ZipWriter::end() {
  const Member& member = members_.back();
  CAPSTAN_ASSERT(written_ == member.bytes);
  to_.write_at(member.offset + kCrcInHead, Bytes(member.crc).text());
}

void ZipWriter::finish() {
  const std::uint64_t directory = to_.appended();
  for (const Member& member : members_) {
    const Bytes extra(kExtra64, std::uint16_t{24}, member.bytes, member.bytes, member.offset);
    const Bytes head(kCentralHead, static_cast<std::uint16_t>(kMadeOnUnix | kVersion), kVersion, kUtf8,
                     kStored, kTime, kDate, member.crc, kIn64, kIn64,
                     static_cast<std::uint16_t>(member.name.size()),
                     static_cast<std::uint16_t>(extra.text().size()), std::uint16_t{0}, std::uint16_t{0},
                     std::uint16_t{0}, kMode, kIn64);
    to_.append(head.text() + member.name + extra.text());
  }
  const std::uint64_t end = to_.appended();
  const std::uint64_t count = members_.size();
  const Bytes end64(kEnd64, std::uint64_t{44}, kVersion, kVersion, std::uint32_t{0}, std::uint32_t{0}, count,
                    count, end - directory, directory);
  const Bytes locator(kEnd64Locator, std::uint32_t{0}, end, std::uint32_t{1});
  constexpr std::uint16_t kIn64Count = 0xffff;
  const Bytes last(kEnd, std::uint16_t{0}, std::uint16_t{0}, kIn64Count, kIn64Count, kIn64, kIn64,
                   std::uint16_t{0});
  to_.append(end64.text() + locator.text() + last.text());
}

}  // namespace capstan::io
