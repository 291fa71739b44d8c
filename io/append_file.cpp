// append_file.cpp -- O_APPEND writes; errors become one warning.
#include "io/append_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/file_size_signal.hpp"
#include "base/log.hpp"
#include "base/open_to_append.hpp"

namespace capstan::io {

bool AppendFile::open() {
  if (file_) return true;
  file_ = FileDescriptor(open_to_append(path_));
  if (!file_) warn_once("open", errno);
  return static_cast<bool>(file_);
}

bool AppendFile::write(std::string_view bytes) {
  const FileSizeSignalBlock file_size_signal;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      warn_once("write", errno);
      return false;
    }
    torn_ = true;  // until all bytes are written
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  torn_ = false;
  return true;
}

bool AppendFile::append(std::string_view bytes, std::string_view separator) {
  if (!open()) return false;
  return (!torn_ || write(separator)) && write(bytes);
}

void AppendFile::warn_once(std::string_view operation, int error) {
  if (std::exchange(warned_, true)) return;
  log::warn("cannot {} {}: {}; the job continues, output to this file is lost until a write succeeds",
            operation, path_.string(), std::strerror(error));
}

bool replace_text(const std::filesystem::path& path, std::string_view text, bool& warned) {
  const FileSizeSignalBlock file_size_signal;
  const std::string temporary = fmt::format("{}.tmp-{}", path.string(), ::getpid());
  (void)::unlink(temporary.c_str());  // left by an earlier process with this pid, or planted
  const FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  bool complete = static_cast<bool>(file);
  while (complete && !text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    complete = written >= 0;
    if (complete) text.remove_prefix(static_cast<std::size_t>(written));
  }
  complete = complete && ::rename(temporary.c_str(), path.c_str()) == 0;
  if (complete) return true;
  const int error = errno;
  (void)::unlink(temporary.c_str());
  if (!std::exchange(warned, true))
    log::warn("cannot write {}: {}; the job continues", path.string(), std::strerror(error));
  return false;
}

}  // namespace capstan::io
