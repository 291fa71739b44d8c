// job_files.hpp -- the ends of the logs and metrics in a run directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace capstan::launch::report {

/// The end of a file.
struct FileEnd {
  std::string text = {};
  std::uintmax_t left_out = 0;  ///< bytes before `text`
  std::string error = {};       ///< why the file cannot be read; "": it was read
};
/// Reads at most the last `max_bytes` of a file.
FileEnd read_end(const std::filesystem::path& path, std::size_t max_bytes);

struct JobFile {
  std::string name;  ///< relative to the run directory
  FileEnd end;       ///< starts at the start of a line, or of a word in a line that is too long
};

struct JobFiles {
  std::vector<JobFile> files = {};
  std::vector<std::filesystem::path> left_out_logs = {};
  std::string overview = {};  ///< lines with the number of logs, and with directories that cannot be read
};

/// Reads metrics.jsonl, summary.txt, metrics.prom and log/*.log: at most 64 KiB of each, and of the logs the
/// 256 that were written last. cluster.json, traces and events are not read. Throws Error: not_found if the
/// directory does not exist; invalid_argument if it is no directory; permission_denied.
JobFiles read_job_files(const std::filesystem::path& run_dir);

}  // namespace capstan::launch::report
