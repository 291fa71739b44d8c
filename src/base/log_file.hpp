// log_file.hpp -- a log sink that appends lines to a file, and warns once if it cannot.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

namespace capstan::log {

/// Discards lines until open(). Each line is one write(2) to the end of the file, so several processes may
/// append to it. Nothing is buffered, so a killed process loses no line.
class LogFile final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  /// `warn_to` receives the warning that the file cannot be written; it must outlive this object.
  explicit LogFile(spdlog::sinks::sink& warn_to) : warn_to_(warn_to) { set_level(spdlog::level::off); }
  ~LogFile() override;

  /// From now on, appends lines of `level` and above to `path`. Creates the parent directory, and the
  /// directory above it, if they are missing. Refuses files that another user may have planted
  /// (open_to_append). Any thread.
  void open(const std::filesystem::path& path, spdlog::level::level_enum level);

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  void write(std::string_view line);
  void warn_once(const char* call, int error);

  spdlog::sinks::sink& warn_to_;
  std::string path_;
  int fd_ = -1;
  bool torn_ = false;  // the last line that this process wrote is incomplete
  bool warned_ = false;
};

}  // namespace capstan::log
