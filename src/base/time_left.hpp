// time_left.hpp -- how much of its time a Slurm job still has.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace capstan {

struct TimeLeft {
  bool known = false;                             ///< Slurm has answered
  std::optional<std::chrono::seconds> left = {};  ///< of the limit; none: there is no limit
  const char* source = "squeue";                  ///< who has said so, or is to be asked
};

/// What `squeue -o %L` prints: "1-02:03:04", "02:03:04", "3:04", "UNLIMITED". Not known: anything else.
TimeLeft parse_time_left(std::string_view text);

/// Of the job that this process is in: squeue says it, or SLURM_JOB_END_TIME (Slurm 23.02) where squeue does
/// not answer within ten seconds. squeue first, since an administrator may have given the job more time
/// meanwhile. Outside of Slurm: known, without a limit.
TimeLeft slurm_time_left();

}  // namespace capstan
