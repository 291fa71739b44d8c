// event_file.hpp -- scalars for TensorBoard: a TFRecord file of Event messages, written by hand.
//
// A record is its length (uint64), the masked CRC-32C of those eight bytes, the message, and the masked
// CRC-32C of that; all numbers little-endian.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/append_file.hpp"

namespace capstan::io {

/// A message `Event` of tensorflow/core/util/event.proto with one value. `time` is in seconds since 1970.
std::string scalar_event(std::string_view tag, double value, std::int64_t step, double time);
/// The first one of a file: it says which version of the format follows.
std::string version_event(double time);
/// A message as a record.
std::string record_of(std::string_view message);

/// DIR/events.out.tfevents.<time>.<host>.<pid>, made by the first scalar. One that cannot be written is one
/// warning. One thread.
class EventFile {
 public:
  EventFile(const std::filesystem::path& folder, std::string_view host, double time);

  /// In the file after `flush`.
  void scalar(std::string_view tag, double value, std::int64_t step, double time);
  void flush();
  const std::filesystem::path& path() const noexcept { return file_.path(); }

 private:
  AppendFile file_;
  double time_;
  std::string records_;  // not in the file yet
  bool begun_ = false;
};

}  // namespace capstan::io
