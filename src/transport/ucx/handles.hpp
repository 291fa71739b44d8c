// handles.hpp -- traits of UCX handles for Handle (base/handle.hpp), and the check of a UCX status.
#pragma once

#include <ucp/api/ucp.h>

#include <string_view>

#include "base/handle.hpp"
#include "capstan/error.hpp"

namespace capstan::transport {

struct ConfigTraits {
  using type = ucp_config_t*;
  static type none() noexcept { return nullptr; }
  static void free(type h) noexcept { ucp_config_release(h); }
};

struct ContextTraits {
  using type = ucp_context_h;
  static type none() noexcept { return nullptr; }
  static void free(type h) noexcept { ucp_cleanup(h); }
};

struct WorkerTraits {
  using type = ucp_worker_h;
  static type none() noexcept { return nullptr; }
  static void free(type h) noexcept { ucp_worker_destroy(h); }
};

struct RemoteKeyTraits {
  using type = ucp_rkey_h;
  static type none() noexcept { return nullptr; }
  static void free(type h) noexcept { ucp_rkey_destroy(h); }
};

inline void check(ucs_status_t status, std::string_view call, Where where = Where::here()) {
  if (status != UCS_OK) throw call_failed(call, ucs_status_string(status), where);
}

}  // namespace capstan::transport
