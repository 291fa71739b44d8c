// request.hpp -- options of `capstan serve`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace capstan::launch::serve {

/// Bounds of what clients may ask for. docs/serving.md has the table.
struct Limits {
  std::uint64_t body_bytes = 8 << 20;              // of a request
  std::size_t elements = 65536;                    // ids, examples, items or answers of a request
  std::chrono::milliseconds request_time{10'000};  // to receive a request, and again to send its answer
  std::chrono::milliseconds idle_time{60'000};     // of a connection between requests
  int threads = 16;                                // connections that are served at the same time
  int queue = 64;                                  // connections that wait for a thread
};

struct Request {
  std::string model = {};   // a model file, a checkpoint, or a directory of checkpoints
  std::string socket = {};  // path of a Unix socket; "": TCP
  int port = -1;            // on 127.0.0.1; 0: any free port; -1: a Unix socket
  Limits limits = {};
  std::chrono::milliseconds reload{0};  // between two looks for a newer model; 0: never
  std::string copy_dir = {};            // for the copy of a checkpoint; "": $TMPDIR or /tmp
};

}  // namespace capstan::launch::serve
