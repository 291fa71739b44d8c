// program_path.cpp -- searches $PATH without starting anything.
#include "launch/run/program_path.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace capstan::launch::run {
namespace {

int file_error(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) return ENOENT;
  if (std::filesystem::is_directory(status) || access(file.c_str(), X_OK) != 0) return EACCES;
  return 0;
}

}  // namespace

int program_error(const std::string& program, std::string_view path) {
  if (program.find('/') != std::string::npos) return file_error(program);
  int worst = ENOENT;
  while (!path.empty()) {
    const std::size_t colon = std::min(path.find(':'), path.size());
    const std::string_view directory = path.substr(0, colon);
    path.remove_prefix(std::min(colon + 1, path.size()));
    const int error = file_error(std::filesystem::path(directory.empty() ? "." : directory) / program);
    if (error == 0) return 0;
    if (error == EACCES) worst = EACCES;
  }
  return worst;
}

}  // namespace capstan::launch::run
