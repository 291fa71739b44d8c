// file_limit.cpp -- getrlimit, setrlimit.
#include "cluster/supervisor/file_limit.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"

namespace capstan::cluster {
namespace {

/// A rank without connections has about 50 open files while MPI is initialized; the program needs some, too.
constexpr rlim_t kOthers = 200;

}  // namespace

void raise_file_limit_for(std::size_t connections) {
  const rlim_t wanted = connections + kOthers;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    log::warn("setrlimit(RLIMIT_NOFILE, {}): {}", limit.rlim_cur, std::strerror(errno));
    return;
  }
  if (limit.rlim_cur < wanted) {
    log::warn("{} connections may need {} file descriptors, and the limit is {}; raise it (ulimit -n)",
              connections, wanted, limit.rlim_cur);
  } else {
    log::debug("raised the limit of file descriptors from {} to {}", before, wanted);
  }
}

}  // namespace capstan::cluster
