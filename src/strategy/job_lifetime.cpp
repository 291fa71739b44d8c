// job_lifetime.cpp -- selects the ranks that are notified of the end of the job.
#include "strategy/job_lifetime.hpp"

#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "ps/server/ps_server.hpp"
#include "transport/message_types.hpp"

namespace capstan::strategy {

JobLifetime::JobLifetime(std::shared_ptr<cluster::Runtime> runtime) : runtime_(std::move(runtime)) {
  runtime_->begin_job();
  // Ranks may send messages, or die, before the Coordinator registers its handlers.
  runtime_->control().keep_unhandled(true);
}

JobLifetime::~JobLifetime() {
  if (!over_ && !embedded_ps_.empty()) end();  // the constructor of the strategy failed
  // Handlers refer to the strategy, and closing the peers still delivers messages that have arrived.
  runtime_->control().remove_handlers();
  runtime_->end_job(over_);
}

void JobLifetime::start_embedded_ps() {
  for (const auto& rank : runtime_->embedded()) {
    if (rank->self().role != Role::ps) continue;
    embedded_ps_.emplace_back([rank] {
      try {
        ps::PsServer(rank).run();
      } catch (const std::exception& error) {
        log::error("the ps of this process ended: {}", error.what());
      }
    });
  }
}

void JobLifetime::end() {
  // A restarted coordinator would find no ranks.
  if (!runtime_->in_process()) cluster::Heartbeat::forbid_restart();
  const cluster::Membership& members = runtime_->membership();
  const cluster::CoordinatorRecord record = runtime_->coordinator_memory().read();
  for (const cluster::Member& member : runtime_->members()) {
    if (member.role == Role::coordinator) continue;
    // A restarted coordinator has no connections to workers that died before.
    if (member.role == Role::worker && members.is_lost(member.rank)) continue;
    // A spare that replaced a ps receives the message that is sent to that ps. A spare that counts as dead
    // may still run, but a restarted coordinator has no connection to it.
    if (member.role == Role::spare && runtime_->incarnation() > 0 && !record.is_standby(member.rank))
      continue;
    try {
      runtime_->control_peer(member).send(transport::kShutdown, {});
    } catch (const Error& error) {
      log::debug("cannot tell {} that the job is over: {}", member.name(), error.what());
    }
  }
  runtime_->control().progress();
  embedded_ps_.clear();
  over_ = true;
}

}  // namespace capstan::strategy
