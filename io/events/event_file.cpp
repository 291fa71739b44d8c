// event_file.cpp -- the part of the protobuf wire format that three messages need.
#include "io/events/event_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "io/events/crc32c.hpp"

namespace capstan::io {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kFlushBytes = 64 * 1024;

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

void add_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

void add_key(std::string& to, unsigned field, WireType type) {
  add_varint(to, field << 3 | static_cast<unsigned>(type));
}

template <class T>
void add_raw(std::string& to, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

void add_bytes(std::string& to, unsigned field, std::string_view bytes) {
  add_key(to, field, WireType::length);
  add_varint(to, bytes.size());
  to += bytes;
}

/// Event.wall_time = 1
std::string event_at(double time) {
  std::string event;
  add_key(event, 1, WireType::fixed64);
  add_raw(event, time);
  return event;
}

}  // namespace

std::string version_event(double time) {
  std::string event = event_at(time);
  add_bytes(event, 3, "brain.Event:2");  // Event.file_version = 3
  return event;
}

std::string scalar_event(std::string_view tag, double value, std::int64_t step, double time) {
  std::string summary_value;
  add_bytes(summary_value, 1, tag);              // Summary.Value.tag = 1
  add_key(summary_value, 2, WireType::fixed32);  // Summary.Value.simple_value = 2
  add_raw(summary_value, static_cast<float>(value));
  std::string summary;
  add_bytes(summary, 1, summary_value);  // Summary.value = 1
  std::string event = event_at(time);
  add_key(event, 2, WireType::varint);  // Event.step = 2
  add_varint(event, static_cast<std::uint64_t>(step));
  add_bytes(event, 5, summary);  // Event.summary = 5
  return event;
}

std::string record_of(std::string_view message) {
  std::string record;
  add_raw(record, std::uint64_t{message.size()});
  add_raw(record, masked(crc32c(record)));
  record += message;
  add_raw(record, masked(crc32c(message)));
  return record;
}

EventFile::EventFile(const std::filesystem::path& directory, std::string_view host, double time)
    : file_(directory / fmt::format("events.out.tfevents.{:.0f}.{}.{}", time, host, ::getpid())),
      time_(time) {}

void EventFile::scalar(std::string_view tag, double value, std::int64_t step, double time) {
  if (!has_version_) records_ = record_of(version_event(time_));
  has_version_ = true;
  records_ += record_of(scalar_event(tag, value, step, time));
  if (records_.size() >= kFlushBytes) flush();
}

/// Readers stop at a truncated record, so the records after one are dropped.
void EventFile::flush() {
  if (!records_.empty() && !file_.torn()) (void)file_.append(records_, {});
  records_.clear();
}

}  // namespace capstan::io
