// job_files.cpp -- reads the ends of files.
#include "launch/report/job_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "capstan/error.hpp"

namespace capstan::launch::report {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxEndBytes = 64 << 10;
constexpr std::size_t kMaxLogs = 256;

/// Starts at the start of a line.
JobFile read_end(const fs::path& run_dir, const fs::path& path) {
  JobFile result{.name = path.lexically_relative(run_dir).string()};
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (!file || error) {
    result.text = "(cannot be read)\n";
    return result;
  }
  result.left_out = size > kMaxEndBytes ? size - kMaxEndBytes : 0;
  file.seekg(static_cast<std::streamoff>(result.left_out));
  result.text.assign(std::istreambuf_iterator<char>(file), {});
  if (result.left_out > 0) {
    const std::size_t line = std::min(result.text.find('\n'), result.text.size());
    result.text.erase(0, line + 1);
    result.left_out += line + 1;
  }
  return result;
}

}  // namespace

std::vector<JobFile> read_job_files(const fs::path& run_dir) {
  std::error_code error;
  const fs::file_status status = fs::status(run_dir, error);
  if (status.type() == fs::file_type::not_found)
    throw Error(Code::not_found,
                fmt::format("{}: no such directory, expected the --run-dir of a job", run_dir.string()));
  if (!fs::is_directory(status)) {
    throw Error(Code::invalid_argument,
                fmt::format("{}: not a directory, expected the --run-dir of a job", run_dir.string()));
  }
  std::vector<fs::path> paths;
  for (const char* name : {"summary.txt", "metrics.jsonl", "metrics.prom"}) {
    if (fs::is_regular_file(run_dir / name, error)) paths.push_back(run_dir / name);
  }
  std::vector<fs::path> logs;
  for (const auto& entry : fs::directory_iterator(run_dir / "log", error)) {
    if (entry.is_regular_file(error) && entry.path().extension() == ".log") logs.push_back(entry.path());
  }
  std::sort(logs.begin(), logs.end());
  logs.resize(std::min(logs.size(), kMaxLogs));
  paths.insert(paths.end(), logs.begin(), logs.end());
  std::vector<JobFile> files;
  for (const fs::path& path : paths) files.push_back(read_end(run_dir, path));
  return files;
}

}  // namespace capstan::launch::report
