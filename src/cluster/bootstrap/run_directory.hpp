// run_directory.hpp -- RUN_DIR/cluster.json: how to reach a job's coordinator, and how to start one more
// worker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cluster/bootstrap/join_handshake.hpp"

namespace capstan::cluster {

/// Holds the job's token, so it is readable by its owner alone. There while the job runs.
struct RunFile {
  std::string host;  // of the coordinator
  std::int64_t pid = 0;
  std::string address;  // of its join listener
  Token token{};
  std::string program;
  std::vector<std::string> arguments;              // the program's own name first
  std::string folder;                              // where it was started
  std::map<std::string, std::string> environment;  // CAPSTAN_* and UCX_*
};

/// From the system's random numbers. Throws Error.
Token random_token();

/// Of 64 hexadecimal digits. Throws Error(invalid_argument) that names `source`.
Token token_in(const std::string& source, const std::string& text);

/// This process, and a new token; without an address.
RunFile run_file_of_this_process();

/// Makes the folder if need be. Throws Error.
void write_run_file(const std::filesystem::path& folder, const RunFile& file);
/// Throws Error: not_found; permission_denied when it is another user's, or others may read it; data_loss.
RunFile read_run_file(const std::filesystem::path& folder);
/// If it is of that process.
void remove_run_file(const std::filesystem::path& folder, const std::string& host, std::int64_t pid) noexcept;

}  // namespace capstan::cluster
