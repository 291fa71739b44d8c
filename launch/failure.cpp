// failure.cpp -- one message a job, in one piece.
#include "launch/failure.hpp"

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "launch/exit_codes.hpp"
#include "launch/launcher_rank.hpp"

namespace capstan::launch {
namespace {

/// A launcher ends the whole job at the first rank that fails. The others give rank 0 this long to say why.
constexpr std::chrono::milliseconds kRankZeroSpeaksFirst{500};

}  // namespace

int report_failure(Code code, std::string_view message) {
  const int rank = launcher_rank();
  std::string text;
  if (rank == 0) {
    text.append("capstan: ").append(message).append("\n");
    if (!hint(code).empty()) text.append("hint: ").append(hint(code)).append("\n");
  } else if (own_failure(code)) {
    text.append("capstan: rank ").append(std::to_string(rank)).append(": ").append(message).append("\n");
  }
  std::fputs(text.c_str(), stderr);  // in one piece, whatever other ranks write
  if (rank != 0) std::this_thread::sleep_for(kRankZeroSpeaksFirst);
  return static_cast<int>(exit_code(code));
}

}  // namespace capstan::launch
