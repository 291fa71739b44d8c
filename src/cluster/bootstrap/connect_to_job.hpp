// connect_to_job.hpp -- the visitor's end of the join listener.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "cluster/bootstrap/join_handshake.hpp"
#include "cluster/membership/member.hpp"

namespace capstan::cluster {

/// What the listener at `address` answers. Throws Error: unavailable when nobody is there, or it closes
/// without a word, as it does to who has the wrong token; deadline_exceeded, also when nothing moves for 5 s.
JoinAnswer ask_join_listener(const std::string& address, const Token& token, JoinRequest request,
                             std::span<const std::byte> body, std::chrono::steady_clock::time_point deadline);

/// Environment variable that `capstan join` sets: it has found the job in its run directory.
inline constexpr const char* kJobRuns = "CAPSTAN_JOB_RUNS";

/// Asks the coordinator of a run directory for a place as a worker, until `timeout`: the job may be about to
/// start. Throws Error: the coordinator's own; not_found when the job has ended since `capstan join` found
/// it; deadline_exceeded with the last error.
Table join_late(const std::filesystem::path& run_dir, const Hello& hello, std::chrono::milliseconds timeout);

}  // namespace capstan::cluster
