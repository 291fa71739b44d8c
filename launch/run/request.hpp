// request.hpp -- options of `capstan run`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace capstan::launch::run {

enum class Launcher { automatic, mpirun, srun, local };

/// Number of ranks per role; nullopt means the default of the launch context.
struct Roles {
  std::optional<int> ps = {};
  std::optional<int> workers = {};
  int spares = 0;
  bool evaluator = false;
  bool replicas = false;     ///< each ps has a replica, which is one more rank
  bool ps_per_host = false;  ///< `ps` is the number per host
  /// The environment variable that sets the roles: CAPSTAN_ROLES, CAPSTAN_ROLE_FILE, or "" for neither.
  std::string roles_variable = {};
};

struct Request {
  std::vector<std::string> program = {};  ///< program and arguments
  std::string hosts = {};                 ///< host file; "" for none
  std::string mpirun = "mpirun";          ///< name or path
  Launcher launcher = Launcher::automatic;
  Roles roles = {};
  bool dry_run = false;
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Signal that makes the program save a checkpoint and exit with 85; 0 if it has no checkpoint directory.
  int save_signal = 0;
};

}  // namespace capstan::launch::run
