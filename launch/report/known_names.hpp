// known_names.hpp -- the names of hosts, users and accounts that this process can find out.
#pragma once

#include "launch/report/anonymizer.hpp"

namespace capstan::launch::report {

/// Adds names from the system (host, user, /etc/hosts, /etc/resolv.conf) and from variables: USER, HOME, the
/// host lists, clusters and accounts of Slurm, the hosts in TF_CONFIG, NCCL_COMM_ID and PMI_PORT, and the
/// values of variables whose names suggest a secret. `environment` has the format of `environ`. Malformed
/// values are ignored.
void add_known_names(Anonymizer& anonymizer, const char* const* environment);

}  // namespace capstan::launch::report
