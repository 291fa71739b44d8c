// output_file.cpp -- write to a temporary file, fsync, rename.
#include "io/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <span>
#include <system_error>
#include <utility>

#include "capstan/error.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

void check_free(const fs::path& path, bool replace) {
  std::error_code error;  // ignored: creating the file fails for the same reason
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    throw Error(Code::invalid_argument,
                fmt::format("{} is a directory, expected the name of a file", path.string()));
  }
  if (!replace && fs::exists(status)) {
    throw Error(
        Code::already_exists,
        fmt::format("{} already exists; choose another name, or pass --force to replace it", path.string()));
  }
}

fs::path create_beside(const fs::path& path, bool replace) {
  check_free(path, replace);
  fs::path temporary = fmt::format("{}.tmp-{}", path.string(), ::getpid());
  create_new_file(temporary);
  return temporary;
}

}  // namespace

OutputFile::OutputFile(fs::path path, bool replace)
    : path_(std::move(path)),
      replace_(replace),
      temporary_(create_beside(path_, replace)),
      file_(temporary_) {}

OutputFile::~OutputFile() {
  if (!published_) (void)::unlink(temporary_.c_str());
}

void OutputFile::append(std::string_view bytes) {
  write_at(appended_, bytes);
  appended_ += bytes.size();
}

void OutputFile::write_at(std::uint64_t offset, std::string_view bytes) {
  file_.write_at(offset, std::as_bytes(std::span(bytes)));
}

void OutputFile::publish() {
  file_.sync();
  check_free(path_, replace_);  // another process may have created it meanwhile
  rename_path(temporary_, path_);
  published_ = true;
  sync_path(path_.has_parent_path() ? path_.parent_path() : ".");
}

}  // namespace capstan::io
