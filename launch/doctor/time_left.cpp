// time_left.cpp -- judges whether the time left suffices for a run.
#include "launch/doctor/time_left.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

namespace capstan::launch::doctor {
namespace {

/// Less time barely suffices to start a run, save a checkpoint and stop.
constexpr std::chrono::seconds kMinTimeLeft{600};

}  // namespace

Finding judge_time_left(const std::string& job, const TimeLeft& left) {
  if (!left.known) return skip(fmt::format("job {}: {} does not report the time left", job, left.source));
  if (!left.left) return pass(fmt::format("job {} has no time limit ({})", job, left.source));
  const auto minutes = left.left->count() / 60;
  const std::string observed =
      fmt::format("job {} has {} h {:02} min left ({})", job, minutes / 60, minutes % 60, left.source);
  if (*left.left >= kMinTimeLeft) return pass(observed);
  return warn(observed, "request more (--time), and save before the end: #SBATCH --signal=USR1@120");
}

Finding check_time_left(const Request&) {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr || *job == '\0') return skip("not in a Slurm job (no SLURM_JOB_ID)");
  return judge_time_left(job, slurm_time_left());
}

}  // namespace capstan::launch::doctor
