// job_names.hpp -- the names of hosts and the token in the files of a job.
#pragma once

#include <filesystem>
#include <string_view>

#include "launch/report/anonymizer.hpp"
#include "launch/report/job_files.hpp"

namespace capstan::launch::report {

/// Adds the hosts in the metrics and in all logs, also in those that are left out, and the token and the host
/// in the cluster.json of `run_dir`, to the known names.
void add_names_of_job(Anonymizer& anonymizer, const std::filesystem::path& run_dir, const JobFiles& files);

/// Adds the hosts in the metrics of a job: "host": "NAME" and host="NAME".
void add_hosts_in_metrics(Anonymizer& anonymizer, std::string_view metrics);

/// Adds the hosts in a log: "[worker 0@NAME]" at the start of a line and "(rank 3 on NAME)" within it.
void add_hosts_in_log(Anonymizer& anonymizer, std::string_view log);

}  // namespace capstan::launch::report
