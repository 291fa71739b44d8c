// worker_server.hpp -- the life of a worker: one thread runs closures, another talks to the coordinator.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capstan/per_worker.hpp"
#include "cluster/runtime.hpp"
#include "coordinator/protocol.hpp"
#include "strategy/context.hpp"

namespace capstan::coordinator {

class WorkerServer {
 public:
  explicit WorkerServer(std::shared_ptr<cluster::Runtime> runtime);
  ~WorkerServer() { runtime_->control().silence(); }
  WorkerServer(const WorkerServer&) = delete;
  WorkerServer& operator=(const WorkerServer&) = delete;

  /// Runs closures on the calling thread until the coordinator says that the job is over. Throws
  /// Error(unavailable) when the coordinator dies.
  void run();

  /// This worker's object of a recipe, made now if need be. Called by closures.
  std::shared_ptr<void> resource(const detail::ResourceRecipe& recipe);
  /// The object of a recipe that the coordinator announced. Throws Error(internal) for a number that it did
  /// not.
  std::shared_ptr<void> resource(std::uint64_t id);
  int index() const noexcept { return runtime_->self().index; }

 private:
  struct Task {
    RunHeader header;
    std::vector<std::byte> payload;
  };
  struct Answer {
    DoneHeader header;
    std::vector<std::byte> payload;
  };

  void talk();
  Answer execute(const Task& task);

  std::shared_ptr<cluster::Runtime> runtime_;
  strategy::Context context_;
  std::map<std::uint64_t, std::shared_ptr<void>> resources_;
  std::map<std::uint64_t, detail::ResourceRecipe> recipes_;  // announced, of objects that are not made yet

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::deque<Answer> answers_;
  bool over_ = false;
  bool stop_talking_ = false;
  std::string lost_;  // the coordinator's name when it has died
};

}  // namespace capstan::coordinator
