// zip.hpp -- ZIP64 archives of uncompressed members of any size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/output_file.hpp"

namespace capstan::io {

/// Writes members one after the other; the archive is complete after `finish`. One thread at a time.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& to) : to_(to) {}

  /// Begins a member, whose contents are passed to `write` and have exactly `bytes` bytes. `name` is UTF-8
  /// and shorter than 64 KiB.
  void begin(const std::string& name, std::uint64_t bytes);
  void write(std::string_view bytes);
  /// Ends the member. REQUIRES: all its bytes have been written.
  void end();
  /// Completes the archive. REQUIRES: the last member has ended.
  void finish();

 private:
  struct Member {
    std::string name;
    std::uint64_t bytes;
    std::uint64_t offset;  // of its local header
    std::uint32_t crc;
  };
  OutputFile& to_;
  std::vector<Member> members_;
  std::uint64_t written_ = 0;  // bytes written to the last member
};

}  // namespace capstan::io
