// version.cpp -- queries UCX.
#include "transport/ucx/version.hpp"

#include <sstream>

#include "transport/ucx/context.hpp"

namespace capstan::transport {

std::string ucx_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

std::string ucx_header_version() {
  return std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR);
}

bool ucx_has_threads() {
  ucp_lib_attr_t attributes{};
  attributes.field_mask = UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL;
  check(ucp_lib_query(&attributes), "ucp_lib_query");
  return attributes.max_thread_level == UCS_THREAD_MODE_MULTI;
}

std::vector<std::string> ucx_variables() {
  const Handle<ConfigTraits> config = read_config();
  const std::string settings =
      printed([&](std::FILE* to) { ucp_config_print(config.get(), to, "", UCS_CONFIG_PRINT_CONFIG); });
  std::vector<std::string> names;
  std::istringstream lines(settings);
  for (std::string line; std::getline(lines, line);) {
    // "UCX_TLS=all", or "CAPSTAN_UCX_TLS=all" where the variable of that name is set.
    const std::size_t begin = line.find("UCX_");
    const std::size_t equals = line.find('=');
    if (begin == std::string::npos || equals == std::string::npos || begin > equals) continue;
    names.push_back(line.substr(begin, equals - begin));
  }
  return names;
}

}  // namespace capstan::transport
