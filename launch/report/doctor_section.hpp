// doctor_section.hpp -- the output of `capstan doctor --json` as a section of the report.
#pragma once

#include <optional>
#include <string>

#include "base/command_output.hpp"
#include "launch/report/anonymizer.hpp"

namespace capstan::launch::report {

/// Adds the hosts in the output to the known names and returns the section: the output, or the reason why it
/// is left out. An output that is not JSON, because it was cut or other lines precede it, is left out: its
/// hosts are unknown. `output` is empty if the doctor exceeded its time limit.
std::string doctor_section(Anonymizer& anonymizer, const std::optional<CommandOutput>& output);

}  // namespace capstan::launch::report
