// request.hpp -- what the user of `capstan run` asked for.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace capstan::launch::run {

enum class Launcher { automatic, mpirun, srun, local };

/// Of the roles; not given is left to the rule that fits the place.
struct Roles {
  std::optional<int> ps = {};
  std::optional<int> workers = {};
  int spares = 0;
  bool evaluator = false;
  bool replicas = false;      ///< one more rank for each ps
  bool on_each_host = false;  ///< so many ps
  std::string told_elsewhere =
      {};  ///< CAPSTAN_ROLES or CAPSTAN_ROLE_FILE, which the program reads; "" for neither
};

struct Request {
  std::vector<std::string> program = {};  ///< with its arguments
  std::string hosts = {};                 ///< a file; "" for none
  std::string mpirun = "mpirun";          ///< which one
  Launcher launcher = Launcher::automatic;
  Roles roles = {};
  bool dry_run = false;
  std::optional<std::chrono::milliseconds> timeout = {};
};

}  // namespace capstan::launch::run
