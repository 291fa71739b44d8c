// server.cpp -- Server::join: runs the loop of the rank's role.
#include "capstan/cluster.hpp"

#include "base/exit_codes.hpp"
#include "base/log.hpp"
#include "coordinator/worker/worker_server.hpp"
#include "ps/durability/spare.hpp"
#include "ps/server/ps_server.hpp"

namespace capstan {

int Server::join() {
  try {
    switch (cluster_.role()) {
      case Role::ps:
        ps::PsServer(cluster_.runtime()).run();
        return 0;
      case Role::worker:
        coordinator::WorkerServer(cluster_.runtime()).run();
        return 0;
      case Role::spare:
        ps::run_spare(cluster_.runtime());
        return 0;
      case Role::evaluator:
        throw Error(Code::failed_precondition, "this program has no SidecarEvaluator: omit --evaluator");
      case Role::coordinator:
        throw Error(Code::failed_precondition,
                    "the coordinator runs the program; Server is for the other roles");
    }
  } catch (const Error& error) {
    log::error("{}", error.what());
    if (error.code() == Code::aborted) return kExitFenced;
    if (error.code() != Code::unavailable) throw;
  }
  return kExitLostRank;
}

}  // namespace capstan
