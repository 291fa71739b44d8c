// job_files.hpp -- the ends of the logs and metrics in a run directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace capstan::launch::report {

struct JobFile {
  std::string name;             ///< relative to the run directory
  std::string text = {};        ///< the end of the file
  std::uintmax_t left_out = 0;  ///< bytes before `text`
};

/// Reads metrics.jsonl, summary.txt, metrics.prom and log/*.log: at most 64 KiB of each and 256 logs.
/// cluster.json, traces and events are not read. Throws Error: not_found if the directory does not exist;
/// invalid_argument if it is no directory.
std::vector<JobFile> read_job_files(const std::filesystem::path& run_dir);

}  // namespace capstan::launch::report
