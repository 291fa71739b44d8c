// ps_calls.hpp -- requests to all ps at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/client.hpp"
#include "transport/fabric.hpp"

namespace capstan::strategy {

// Both are called by the thread that owns the client. `purpose` completes "cannot ..." in error messages, as
// in "begin its part of a checkpoint".

/// Sends one request to every ps, waits for all replies and returns them by ps index. Throws Error:
/// unavailable, deadline_exceeded, and the error that a ps replied with.
std::vector<std::vector<std::byte>> ask_every_ps(client::Client& client, std::uint16_t type,
                                                 transport::Bytes request, std::chrono::milliseconds timeout,
                                                 const std::string& purpose);

/// Sends each ps its own request, by ps index. If a ps replies with an error, waits for the replies of the
/// others, then throws the first error. Throws Error at once if a ps does not reply.
void ask_each_ps(client::Client& client, std::uint16_t type,
                 const std::vector<std::vector<std::byte>>& requests, std::chrono::milliseconds timeout,
                 const std::string& purpose);

}  // namespace capstan::strategy
