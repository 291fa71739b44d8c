// run_directory.hpp -- RUN_DIR/cluster.json: how to reach the coordinator of a job, and how to start a
// worker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cluster/bootstrap/join_handshake.hpp"

namespace capstan::cluster {

/// Content of the file. It has the job's token, so only the owner can read the file, which exists while the
/// job runs.
struct RunFile {
  std::string host;  // of the coordinator
  std::int64_t pid = 0;
  std::string address;  // of its join listener
  Token token{};
  std::string program;
  std::vector<std::string> arguments;              // starts with the program's name
  std::string directory;                           // working directory of the start
  std::map<std::string, std::string> environment;  // CAPSTAN_* and UCX_*
};

/// Returns a token of random bits from the system. Throws Error.
Token random_token();

/// Parses 64 hexadecimal digits. Throws Error(invalid_argument), which names `source`.
Token token_in(const std::string& source, const std::string& text);

/// Returns the file of this process with a new token, without an address.
RunFile run_file_of_this_process();

/// Creates the directory if necessary. Throws Error.
void write_run_file(const std::filesystem::path& directory, const RunFile& file);
/// Throws Error: not_found; permission_denied if the file belongs to another user, or others can read it;
/// data_loss.
RunFile read_run_file(const std::filesystem::path& directory);
/// Removes the file if the process `pid` on `host` wrote it.
void remove_run_file(const std::filesystem::path& directory, const std::string& host,
                     std::int64_t pid) noexcept;

}  // namespace capstan::cluster
