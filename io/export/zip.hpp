// zip.hpp -- an archive whose members are stored as they are, each of any size (ZIP64).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/output_file.hpp"

namespace capstan::io {

/// Writes members one after the other; the archive is whole after `finish`. One thread at a time.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& to) : to_(to) {}

  /// Begins a member of exactly `bytes` bytes, which `write` then brings. `name` is UTF-8 of at most 64 KiB.
  void begin(const std::string& name, std::uint64_t bytes);
  void write(std::string_view bytes);
  /// Once all of the member is written.
  void end();
  void finish();

 private:
  struct Member {
    std::string name;
    std::uint64_t bytes;
    std::uint64_t offset;  // of its head
    std::uint32_t crc;
  };
  OutputFile& to_;
  std::vector<Member> members_;
  std::uint64_t written_ = 0;  // of the last member
};

}  // namespace capstan::io
