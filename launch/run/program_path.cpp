// program_path.cpp -- searches $PATH without starting anything.
#include "launch/run/program_path.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
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

int program_error(const std::string& program, const char* path) {
  if (program.find('/') != std::string::npos) return file_error(program);
  std::string_view left = path == nullptr ? "/bin:/usr/bin" : path;  // as glibc
  int result = ENOENT;
  for (;;) {
    const std::string_view directory = left.substr(0, left.find(':'));
    const int error = file_error(std::filesystem::path(directory.empty() ? "." : directory) / program);
    if (error == 0) return 0;
    if (error == EACCES) result = EACCES;  // as execvp, even if later directories do not have the program
    if (directory.size() == left.size()) return result;
    left.remove_prefix(directory.size() + 1);
  }
}

}  // namespace capstan::launch::run
