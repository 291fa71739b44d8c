// worker_server.cpp -- executing closures; the control thread that takes them and sends results.
#include "coordinator/worker_server.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/log.hpp"
#include "capstan/coordinator.hpp"
#include "capstan/remote_function.hpp"
#include "capstan/replica_context.hpp"
#include "cluster/message_types.hpp"

namespace capstan {
namespace coordinator {
namespace {

thread_local WorkerServer* current_worker = nullptr;

WorkerServer& worker_of_this_thread(const char* what) {
  if (current_worker == nullptr) {
    throw Error(Code::failed_precondition, std::string(what) + " is for functions that run on a worker");
  }
  return *current_worker;
}

std::vector<std::byte> to_payload(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

WorkerServer::WorkerServer(std::shared_ptr<cluster::Runtime> runtime)
    : runtime_(std::move(runtime)), context_(runtime_) {}

void WorkerServer::run() {
  log::set_rank_tag(runtime_->log_tag());
  strategy::Context::set_current(&context_);
  current_worker = this;
  std::jthread control([this] { talk(); });
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || !lost_.empty() || !tasks_.empty(); });
    if (over_ || !lost_.empty()) break;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    Answer answer = execute(task);
    lock.lock();
    answers_.push_back(std::move(answer));
    runtime_->control().wake();
  }
  stop_talking_ = true;
  lock.unlock();
  runtime_->control().wake();
  control.join();
  current_worker = nullptr;
  strategy::Context::set_current(nullptr);
  resources_.clear();
  if (!lost_.empty()) throw Error(Code::unavailable, lost_ + " is gone; this worker ends");
}

/// Owns the control fabric. Sleeps while there is nothing to take or to send.
void WorkerServer::talk() {
  log::set_rank_tag(runtime_->log_tag());
  transport::Fabric& fabric = runtime_->control();
  transport::Peer& coordinator = runtime_->control_peer(runtime_->member(Role::coordinator, 0));
  fabric.on_message(cluster::kRunClosure, [this](const transport::Message& message) {
    Task task;
    std::memcpy(&task.header, message.header.data(), std::min(sizeof task.header, message.header.size()));
    task.payload.assign(message.payload.begin(), message.payload.end());
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  });
  fabric.on_message(cluster::kHello, [](const transport::Message&) {});
  fabric.on_message(cluster::kShutdown, [this](const transport::Message&) {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_one();
  });
  fabric.on_failure([this](transport::Peer& peer) {
    const std::lock_guard lock(mutex_);
    if (over_ || stop_talking_) return;
    lost_ = peer.name();
    changed_.notify_one();
  });
  coordinator.send(cluster::kHello, {});
  while (true) {
    std::deque<Answer> answers;
    {
      const std::lock_guard lock(mutex_);
      if (stop_talking_) return;
      answers.swap(answers_);
    }
    for (const Answer& answer : answers) {
      coordinator.send(cluster::kClosureDone,
                       std::as_bytes(std::span<const DoneHeader, 1>(&answer.header, 1)), answer.payload);
    }
    if (fabric.progress() == 0 && answers.empty()) fabric.wait(std::chrono::milliseconds(500));
  }
}

WorkerServer::Answer WorkerServer::execute(const Task& task) {
  const auto failed = [&](Code code, std::string_view text) {
    return Answer{{task.header.id, static_cast<std::uint64_t>(code)}, to_payload(text)};
  };
  try {
    Reader message(task.payload);
    for (auto& variable : read<std::vector<shard::VariableDescriptor>>(message))
      context_.add(std::move(variable));
    for (auto& recipe : read<std::vector<detail::ResourceRecipe>>(message)) {
      recipes_.insert_or_assign(recipe.id, std::move(recipe));
    }
    const auto arguments = read<std::vector<std::byte>>(message);
    const auto& function = detail::registered_function(static_cast<std::uint32_t>(task.header.function));
    Reader in(arguments);
    std::vector<std::byte> result = function.run(in);
    context_.client().flush();
    return {{task.header.id, 0}, std::move(result)};
  } catch (const Error& error) {
    return failed(error.code(), error.what());
  } catch (const std::exception& error) {
    return failed(Code::unknown, error.what());
  } catch (...) {
    return failed(Code::unknown, "the function threw something that is no std::exception");
  }
}

std::shared_ptr<void> WorkerServer::resource(const detail::ResourceRecipe& recipe) {
  auto& made = resources_[recipe.id];
  if (!made) {
    Reader in(recipe.arguments);
    made = detail::registered_function(recipe.function).make(in);
  }
  return made;
}

std::shared_ptr<void> WorkerServer::resource(std::uint64_t id) {
  if (const auto made = resources_.find(id); made != resources_.end()) return made->second;
  const auto recipe = recipes_.find(id);
  if (recipe == recipes_.end()) {
    throw Error(Code::internal, "per-worker object " + std::to_string(id) + " is not known on this worker");
  }
  auto made = resource(recipe->second);
  recipes_.erase(recipe);  // its arguments may be as large as the object
  return made;
}

}  // namespace coordinator

std::shared_ptr<void> detail::worker_resource(const ResourceRecipe& recipe) {
  return coordinator::worker_of_this_thread("a per-worker value").resource(recipe);
}
std::shared_ptr<void> detail::worker_resource(std::uint64_t id) {
  return coordinator::worker_of_this_thread("a per-worker value").resource(id);
}

int current_worker_index() {
  if (in_replica_context()) {  // on a thread of its own, which shares the worker's context
    const cluster::Member& self = strategy::Context::current().client().runtime().self();
    if (self.role == Role::worker) return self.index;
  }
  return coordinator::worker_of_this_thread("current_worker_index()").index();
}

}  // namespace capstan
