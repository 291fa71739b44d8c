// text_examples.cpp -- a file in memory holds the lines, so that requests and training have one parser.
#include "train/scoring/text_examples.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "capstan/error.hpp"
#include "io/file.hpp"

namespace capstan::train {
namespace {

/// Replaces the path of the file in memory, which means nothing to a client.
std::string with_name(std::string text, const std::string& path) {
  for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path)) {
    text.replace(at, path.size(), "lines");
  }
  return text;
}

}  // namespace

SparseExamples read_lines(std::span<const std::string> lines, const SparseFormat& format) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty() || lines[i].find_first_of("\n\r") != std::string::npos) {
      throw Error(Code::invalid_argument,
                  fmt::format("lines:{}: the line is empty or has a line end, expected one example", i + 1));
    }
    text += lines[i] + "\n";
  }
  const io::FileDescriptor file(::memfd_create("capstan-lines", MFD_CLOEXEC));
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  for (std::size_t done = 0; file.get() >= 0 && done < text.size();) {
    const ssize_t wrote = ::write(file.get(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) throw io::file_failed("write", "lines in memory", errno);
    done += static_cast<std::size_t>(std::max<ssize_t>(wrote, 0));
  }
  if (file.get() < 0) throw io::file_failed("create", "lines in memory", errno);
  SparseExamples examples;
  try {
    examples = read_share({path}, format, 0, 1).examples;
  } catch (const Error& error) {
    throw Error(error.code(), with_name(error.what(), path));
  }
  if (examples.size() == lines.size()) return examples;
  throw Error(
      Code::invalid_argument,
      fmt::format("\"lines\": found {} examples in {} lines, expected one in each: no comments and no "
                  "blank lines",
                  examples.size(), lines.size()));
}

}  // namespace capstan::train
