// event_file.hpp -- scalars for TensorBoard: a TFRecord file of Event messages, encoded without protobuf.
//
// A record is its length (uint64), the masked CRC-32C of those eight bytes, the message, and the masked
// CRC-32C of the message; all numbers are little-endian.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/append_file.hpp"

namespace capstan::io {

/// Encodes an `Event` message (tensorflow/core/util/event.proto) with one value. `time` is in seconds since
/// the epoch.
std::string scalar_event(std::string_view tag, double value, std::int64_t step, double time);
/// Encodes the first event of a file, which holds the format version.
std::string version_event(double time);
/// Frames a message as a TFRecord record.
std::string record_of(std::string_view message);

/// The file DIRECTORY/events.out.tfevents.<time>.<host>.<pid>, created when the first scalar is flushed.
/// Write failures log one warning. One thread.
class EventFile {
 public:
  EventFile(const std::filesystem::path& directory, std::string_view host, double time);

  /// Buffers a scalar; writes the buffer once it holds 64 KiB.
  void scalar(std::string_view tag, double value, std::int64_t step, double time);
  void flush();
  const std::filesystem::path& path() const noexcept { return file_.path(); }

 private:
  AppendFile file_;
  double time_;
  std::string records_;  // not yet written to the file
  bool has_version_ = false;
};

}  // namespace capstan::io
