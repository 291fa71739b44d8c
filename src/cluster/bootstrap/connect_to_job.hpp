// connect_to_job.hpp -- the client of the join listener.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "cluster/bootstrap/join_handshake.hpp"
#include "cluster/membership/member.hpp"

namespace capstan::cluster {

/// Returns the answer of the listener at `address`. Throws Error: unavailable if none listens there, or if it
/// closes the connection, as for a wrong token; deadline_exceeded, also if no data arrives for 5 s.
JoinAnswer ask_join_listener(const std::string& address, const Token& token, JoinRequest request,
                             std::span<const std::byte> body, std::chrono::steady_clock::time_point deadline);

/// Environment variable that `capstan join` sets once it has found the job in its run directory.
inline constexpr const char* kJobRunsVariable = "CAPSTAN_JOB_RUNS";

/// Asks the coordinator of a run directory to admit this process as a worker. Repeats until `timeout`, since
/// the job may be about to start. Throws Error: the one that the coordinator returned; not_found if the job
/// has ended since `capstan join` found it; deadline_exceeded with the text of the last error.
Table join_late(const std::filesystem::path& run_dir, const Hello& hello, std::chrono::milliseconds timeout);

}  // namespace capstan::cluster
