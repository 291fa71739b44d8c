// machine.hpp -- versions, hardware and limits of this host as text.
#pragma once

#include <string>

namespace capstan::launch::report {

/// Commit, compiler and options of this build, and the versions of its libraries.
std::string build_text();

/// Files of /proc, /sys and /etc: kernel, memory, limits, huge pages, cgroup. Not anonymized.
std::string system_files_text();

/// Output of lscpu, ucx_info, mpirun, srun and nvidia-smi, as far as they are installed. Not anonymized.
std::string system_commands_text();

}  // namespace capstan::launch::report
