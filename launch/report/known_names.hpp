// known_names.hpp -- the names of hosts, users and accounts that this process can find out.
#pragma once

#include <string_view>

#include "launch/report/anonymizer.hpp"

namespace capstan::launch::report {

/// Adds names from the system (host, user, /etc/hosts, /etc/resolv.conf) and from variables: USER, HOME, the
/// host lists and the account of Slurm, and the values of variables whose names suggest a secret.
/// `environment` has the format of `environ`. Malformed values are ignored.
void add_known_names(Anonymizer& anonymizer, const char* const* environment);

/// Adds the hosts in the metrics of a job: "host": "NAME" and host="NAME".
void add_hosts_in(Anonymizer& anonymizer, std::string_view metrics);

}  // namespace capstan::launch::report
