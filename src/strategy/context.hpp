// context.hpp -- what code on a rank reaches parameters through: a client, and the variables that it knows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "client/client.hpp"
#include "gpu/staging.hpp"
#include "protocol/descriptor.hpp"
#include "strategy/gradient_filter.hpp"

namespace capstan::strategy {

class Context;
class ReplicaGroup;

/// A rank's client for one call: alone while the rank's replica threads share it.
class ClientUse {
 public:
  ClientUse(client::Client& client, std::unique_lock<std::recursive_mutex> lock)
      : client_(client), lock_(std::move(lock)) {}
  client::Client* operator->() const noexcept { return &client_; }

 private:
  client::Client& client_;
  std::unique_lock<std::recursive_mutex> lock_;
};

/// A variable together with the rank's way to it.
struct BoundVariable {
  protocol::VariableDescriptor descriptor;
  Context* context = nullptr;
  bool on_coordinator = false;  // in its process alone, out of every other rank's reach
};

/// One shard as a variable of its own rows, "w/part_0". REQUIRES: a variable with that shard.
std::shared_ptr<const BoundVariable> part_of(const BoundVariable& variable, std::uint32_t shard);

/// One for each thread that runs user code: the coordinator's, and each worker's. Lives longer than the
/// handles that are bound to it.
class Context {
 public:
  explicit Context(std::shared_ptr<cluster::Runtime> runtime);
  ~Context();

  client::Client& client() noexcept { return client_; }
  GradientFilter& gradients() noexcept { return gradients_; }
  const cluster::Runtime& runtime() const noexcept { return client_.runtime(); }
  /// What code that a replica may run goes through. Locks only while replica threads run.
  ClientUse use_client() {
    ClientUse use(client_, shared_ ? std::unique_lock(mutex_) : std::unique_lock<std::recursive_mutex>());
    use->push_as(pusher());
    return use;
  }
  /// Set by the replica group before its threads run and after they have.
  void share(bool shared) noexcept { shared_ = shared; }
  bool shared() const noexcept { return shared_; }
  /// Set by it while one of them does something for all, and the others sleep.
  void be_together(bool together) noexcept { together_ = together; }
  ReplicaGroup& replicas() noexcept { return *replicas_; }
  /// Staging memory of the thread that owns the client.
  gpu::Staging& staging(int gpu) { return staging_.try_emplace(gpu, gpu).first->second; }

  std::shared_ptr<const BoundVariable> add(protocol::VariableDescriptor descriptor,
                                           bool on_coordinator = false);
  /// Throws Error(internal) when this rank has not heard of it.
  std::shared_ptr<const BoundVariable> find(std::uint32_t id) const;

  /// The calling thread's, or null.
  static Context* current_or_null() noexcept;
  /// The calling thread's. Throws Error(failed_precondition) on a thread that has none.
  static Context& current();
  static void set_current(Context* context) noexcept;
  /// A strategy's, of the thread that made it: current from now on, until one that is made later is added, or
  /// this one is removed; then the last that is left is current again.
  static void add_of_this_thread(Context& context);
  static void remove_of_this_thread(Context& context) noexcept;

 private:
  client::Client client_;
  GradientFilter gradients_{client_.runtime().settings()};
  std::map<std::uint32_t, std::shared_ptr<const BoundVariable>> variables_;
  std::map<int, gpu::Staging> staging_;  // by GPU
  /// The replica that pushes; 0 where one does it for all.
  int pusher() const noexcept;

  bool shared_ = false;
  bool together_ = false;
  std::recursive_mutex mutex_;
  std::unique_ptr<ReplicaGroup> replicas_;
};

}  // namespace capstan::strategy
