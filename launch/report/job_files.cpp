// job_files.cpp -- lists the files of a job and reads their ends.
#include "launch/report/job_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "capstan/error.hpp"
#include "io/file.hpp"

namespace capstan::launch::report {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEndBytes = 64 << 10;
constexpr std::size_t kMaxLogs = 256;

struct Log {
  fs::path path;
  fs::file_time_type written;
};

struct LogList {
  std::vector<Log> logs = {};  // in order of their names
  std::size_t unreadable = 0;
  std::error_code error = {};  // the list is incomplete
};

LogList list_logs(const fs::path& directory) {
  LogList list;
  for (fs::directory_iterator at(directory, list.error), end; !list.error && at != end;
       at.increment(list.error)) {
    if (at->path().extension() != ".log") continue;
    std::error_code error;
    const fs::file_time_type written = at->last_write_time(error);
    if (!error && at->is_regular_file(error)) {
      list.logs.push_back({at->path(), written});
    } else {
      ++list.unreadable;
    }
  }
  std::sort(list.logs.begin(), list.logs.end(), [](const Log& a, const Log& b) { return a.path < b.path; });
  return list;
}

/// Removes all logs from `logs` but those that were written last, and returns the removed ones.
std::vector<fs::path> take_older_logs(std::vector<Log>& logs) {
  if (logs.size() <= kMaxLogs) return {};
  // Logs of equal times stay in order of their names.
  std::stable_sort(logs.begin(), logs.end(),
                   [](const Log& a, const Log& b) { return a.written > b.written; });
  std::vector<fs::path> older;
  for (std::size_t i = kMaxLogs; i < logs.size(); ++i) older.push_back(logs[i].path);
  logs.resize(kMaxLogs);
  std::sort(logs.begin(), logs.end(), [](const Log& a, const Log& b) { return a.path < b.path; });
  return older;
}

JobFile read_file(const fs::path& run_dir, const fs::path& path) {
  FileEnd end = read_end(path, kMaxEndBytes);
  if (end.left_out > 0) {
    std::size_t cut = end.text.find('\n');
    // One line is longer than the end. Half a name would not be recognized, so the end starts with a word.
    if (cut == std::string::npos || cut + 1 == end.text.size()) cut = end.text.find_first_of(" \t,");
    cut = std::min(cut, end.text.size() - 1) + 1;
    end.text.erase(0, cut);
    end.left_out += cut;
  }
  return {path.lexically_relative(run_dir).string(), std::move(end)};
}

}  // namespace

FileEnd read_end(const fs::path& path, std::size_t max_bytes) {
  FileEnd end;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return {.error = error.message()};
  end.left_out = size > max_bytes ? size - max_bytes : 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return {.error = std::generic_category().message(errno)};
  file.seekg(static_cast<std::streamoff>(end.left_out));
  end.text.resize(static_cast<std::size_t>(size - end.left_out));
  file.read(end.text.data(), static_cast<std::streamsize>(end.text.size()));
  end.text.resize(static_cast<std::size_t>(file.gcount()));
  return end;
}

JobFiles read_job_files(const fs::path& run_dir) {
  std::error_code error;
  const fs::file_status status = fs::status(run_dir, error);
  if (status.type() == fs::file_type::not_found)
    throw Error(Code::not_found,
                fmt::format("{}: no such directory, expected the --run-dir of a job", run_dir.string()));
  if (error) throw io::file_failed("read", run_dir, error.value());
  if (!fs::is_directory(status)) {
    throw Error(Code::invalid_argument,
                fmt::format("{}: not a directory, expected the --run-dir of a job", run_dir.string()));
  }
  JobFiles result;
  for (const char* name : {"summary.txt", "metrics.jsonl", "metrics.prom"}) {
    if (fs::status(run_dir / name, error).type() != fs::file_type::not_found)
      result.files.push_back(read_file(run_dir, run_dir / name));
  }
  LogList list = list_logs(run_dir / "log");
  const std::size_t found = list.logs.size() + list.unreadable;
  result.left_out_logs = take_older_logs(list.logs);
  for (const Log& log : list.logs) {
    result.files.push_back(read_file(run_dir, log.path));
    if (!result.files.back().end.error.empty()) ++list.unreadable;
  }
  result.overview = fmt::format("logs: {} found, {} left out, {} unreadable\n", found,
                                result.left_out_logs.size(), list.unreadable);
  if (list.error)
    result.overview += fmt::format("the list of logs is incomplete: {}\n", list.error.message());
  const bool is_run_dir = !result.files.empty() || found > 0 || fs::exists(run_dir / "cluster.json", error);
  if (!is_run_dir) result.overview += "not the --run-dir of a job: no summary, metrics or logs\n";
  return result;
}

}  // namespace capstan::launch::report
