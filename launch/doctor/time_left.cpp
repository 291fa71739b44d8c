// time_left.cpp -- whether what is left is enough for a run.
#include "launch/doctor/time_left.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

namespace capstan::launch::doctor {
namespace {

/// Below it a run hardly starts, saves and ends.
constexpr std::chrono::seconds kLittle{600};

}  // namespace

Finding judge_time_left(const std::string& job, const TimeLeft& left) {
  if (!left.known)
    return skip(fmt::format("job {}: {} does not say how much time is left", job, left.source));
  if (!left.left) return pass(fmt::format("job {} has no time limit ({})", job, left.source));
  const auto minutes = left.left->count() / 60;
  const std::string seen =
      fmt::format("job {} has {} h {:02} min left ({})", job, minutes / 60, minutes % 60, left.source);
  if (*left.left >= kLittle) return pass(seen);
  return warn(seen, "ask for more (--time), and save on a signal before the end: #SBATCH --signal=USR1@120");
}

Finding check_time_left(const Request&) {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr || *job == '\0') return skip("not a job of Slurm (no SLURM_JOB_ID)");
  return judge_time_left(job, slurm_time_left());
}

}  // namespace capstan::launch::doctor
