// log_file.cpp -- appends to the log file, and reports errors once.
#include "base/log_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_size_signal.hpp"
#include "base/open_to_append.hpp"

namespace capstan::log {

LogFile::~LogFile() {
  if (fd_ >= 0) (void)::close(fd_);
}

void LogFile::open(const std::filesystem::path& path, spdlog::level::level_enum level) {
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0) (void)::close(fd_);
  path_ = path.string();
  torn_ = warned_ = false;
  // Creates the run directory, with its usual private mode, if it does not exist yet.
  (void)::mkdir(path.parent_path().parent_path().c_str(), 0700);
  fd_ = open_to_append(path);
  if (fd_ < 0) warn_once("open", errno);
  set_level(fd_ < 0 ? spdlog::level::off : level);
}

void LogFile::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  write({line.data(), line.size()});
}

void LogFile::write(std::string_view line) {
  const FileSizeSignalBlock file_size_signal;
  std::string after_torn;
  if (torn_) line = after_torn.append("\n").append(line);
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t now = ::write(fd_, line.data() + written, line.size() - written);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) {
      warn_once("write", errno);
      break;
    }
    written += static_cast<std::size_t>(now);
  }
  if (written > 0) torn_ = written < line.size();
}

void LogFile::warn_once(const char* call, int error) {
  if (std::exchange(warned_, true)) return;
  const std::string text = fmt::format(
      "cannot write the log file {}: {}: {}; the job continues, and the file lacks lines until "
      "writing succeeds",
      path_, call, std::strerror(error));
  warn_to_.log(spdlog::details::log_msg("capstan", spdlog::level::warn, text));
}

}  // namespace capstan::log
