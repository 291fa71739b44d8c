// time_left.hpp -- the remaining time of a Slurm job.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace capstan {

struct TimeLeft {
  bool known = false;                             ///< whether Slurm reported the time
  std::optional<std::chrono::seconds> left = {};  ///< time until the limit; nullopt if there is no limit
  const char* source = "squeue";                  ///< source of the time; "squeue" also if it is unknown
};

/// Parses the output of `squeue -o %L`: "1-02:03:04", "02:03:04", "3:04", "UNLIMITED". Other text is unknown.
TimeLeft parse_time_left(std::string_view text);

/// Returns the time left of the job that this process belongs to. Asks squeue first, since an administrator
/// may have extended the limit. Falls back to SLURM_JOB_END_TIME (Slurm 23.02) if squeue does not answer
/// within ten seconds. Outside of Slurm the time is known and has no limit.
TimeLeft slurm_time_left();

}  // namespace capstan
