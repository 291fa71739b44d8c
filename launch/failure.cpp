// failure.cpp -- one error message per job, in one write.
#include "launch/failure.hpp"

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "launch/exit_codes.hpp"
#include "launch/launcher_rank.hpp"

namespace capstan::launch {
namespace {

/// A launcher ends all ranks when the first one fails. Other ranks wait this long for the message of rank 0.
constexpr std::chrono::milliseconds kRankZeroFirst{500};

}  // namespace

int report_failure(Code code, std::string_view message) {
  const int rank = launcher_rank();
  std::string text;
  if (rank == 0) {
    text.append("capstan: ").append(message).append("\n");
    // An error of the command line has a hint of its own.
    if (!hint(code).empty() && message.find("\nhint: ") == std::string_view::npos)
      text.append("hint: ").append(hint(code)).append("\n");
  } else if (is_rank_local(code)) {
    text.append("capstan: rank ").append(std::to_string(rank)).append(": ").append(message).append("\n");
  }
  std::fputs(text.c_str(), stderr);  // one write, so that output of other ranks cannot interleave
  if (rank != 0) std::this_thread::sleep_for(kRankZeroFirst);
  return static_cast<int>(exit_code(code));
}

}  // namespace capstan::launch
