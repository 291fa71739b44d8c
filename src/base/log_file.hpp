// log_file.hpp -- a sink of the log that appends lines to a file, and says once when it cannot.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

namespace capstan::log {

/// Silent until it is opened. Each line is one write to the end of the file, so that several processes may
/// have it open; nothing is kept back that a process which is killed would lose.
class LogFile final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  /// `warn_to` hears that the file cannot be written, and has to outlive this.
  explicit LogFile(spdlog::sinks::sink& warn_to) : warn_to_(warn_to) { set_level(spdlog::level::off); }
  ~LogFile() override;

  /// Lines go to `path` from now on, from `level` up. Creates the directory above it if need be, and opens no
  /// file that another user could have planted (open_to_append). Any thread.
  void open(const std::filesystem::path& path, spdlog::level::level_enum level);

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  void write(std::string_view line);
  void warn_once(const char* call, int error);

  spdlog::sinks::sink& warn_to_;
  std::string path_;
  int fd_ = -1;
  bool torn_ = false;  // the end of the file is half a line
  bool warned_ = false;
};

}  // namespace capstan::log
