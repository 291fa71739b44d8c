// job_secret.cpp -- getrandom(2).
#include "transport/job_secret.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "capstan/error.hpp"

namespace capstan::transport {

JobSecret JobSecret::random() {
  JobSecret secret;
  if (getrandom(&secret, sizeof secret, 0) != static_cast<ssize_t>(sizeof secret)) {
    throw call_failed("getrandom", std::strerror(errno));
  }
  return secret;
}

}  // namespace capstan::transport
