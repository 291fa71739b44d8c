// context.hpp -- the client of a thread that runs user code, and the variables that its rank knows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "client/client.hpp"
#include "gpu/staging.hpp"
#include "protocol/descriptor.hpp"
#include "strategy/gradient_filter.hpp"
#include "strategy/receiver.hpp"

namespace capstan::strategy {

class Context;
class ReplicaGroup;

/// The client for one call: locked while several replica threads, or the receiver, share it.
class ClientUse {
 public:
  ClientUse(client::Client& client, std::unique_lock<std::recursive_mutex> lock)
      : client_(client), lock_(std::move(lock)) {}
  client::Client* operator->() const noexcept { return &client_; }
  client::Client& operator*() const noexcept { return client_; }

 private:
  client::Client& client_;
  std::unique_lock<std::recursive_mutex> lock_;
};

/// A variable with the context that accesses it.
struct BoundVariable {
  protocol::VariableDescriptor descriptor;
  Context* context = nullptr;
  bool on_coordinator = false;  // in the coordinator's process, where no other rank reaches it
};

/// Returns a variable, such as "w/part_0", that consists of one shard. REQUIRES: the shard exists.
std::shared_ptr<const BoundVariable> part_of(const BoundVariable& variable, std::uint32_t shard);
/// Returns a copy of the variable or table whose reads are not rounded in messages.
std::shared_ptr<const BoundVariable> exact_copy_of(const BoundVariable& variable);

/// Each thread that runs user code has one: the coordinator's and each worker's. Outlives the handles that
/// are bound to it.
class Context {
 public:
  explicit Context(std::shared_ptr<cluster::Runtime> runtime);
  ~Context();

  /// Returns the client without a lock: for its runtime and its trace, and while no read can be in flight.
  client::Client& client() noexcept { return client_; }
  GradientFilter& gradients() noexcept { return gradients_; }
  const cluster::Runtime& runtime() const noexcept { return client_.runtime(); }
  /// Returns the client for a call. Locks only while replica threads run, or the receiver is active.
  ClientUse use_client() {
    const bool locks = shared_ || receiver_.active();
    ClientUse use(client_, locks ? receiver_.lock_client() : std::unique_lock<std::recursive_mutex>());
    use->push_as(pusher());
    return use;
  }
  /// Makes use_client() lock. The replica group sets it while several replica threads run. Their order
  /// differs between runs of a function, so their pushes are not combined.
  void share(bool shared) {
    use_client()->combine_pushes(!shared && !gradients_.skips());
    shared_ = shared;
  }
  bool shared() const noexcept { return shared_; }
  /// Receives the rows of reads in flight while the program computes.
  Receiver& receiver() noexcept { return receiver_; }
  /// Attributes pushes to replica 0. The replica group sets it while one replica acts for all, and the others
  /// wait.
  void act_for_all_replicas(bool acts) noexcept { acts_for_all_ = acts; }
  ReplicaGroup& replicas() noexcept { return *replicas_; }
  /// Returns the staging buffers of a GPU. REQUIRES: the caller holds a ClientUse.
  gpu::Staging& staging(int gpu) { return staging_.try_emplace(gpu, gpu).first->second; }

  std::shared_ptr<const BoundVariable> add(protocol::VariableDescriptor descriptor,
                                           bool on_coordinator = false);
  /// Throws Error(internal) if this rank does not know the variable.
  std::shared_ptr<const BoundVariable> find(std::uint32_t id) const;

  /// Returns the calling thread's context, or null.
  static Context* current_or_null() noexcept;
  /// Returns the calling thread's context. Throws Error(failed_precondition) if it has none.
  static Context& current();
  static void set_current(Context* context) noexcept;
  /// Adds the context of a strategy of the calling thread. The context that was added last and not removed is
  /// current.
  static void add_to_thread(Context& context);
  static void remove_from_thread(Context& context) noexcept;

 private:
  client::Client client_;
  GradientFilter gradients_{client_.runtime().settings()};
  std::map<std::uint32_t, std::shared_ptr<const BoundVariable>> variables_;
  std::map<int, gpu::Staging> staging_;  // by GPU
  /// Returns the number of the replica that pushes; 0 if one replica acts for all.
  int pusher() const noexcept;

  bool shared_ = false;
  bool acts_for_all_ = false;
  std::unique_ptr<ReplicaGroup> replicas_;
  Receiver receiver_{client_};  // last: its thread uses the client
};

}  // namespace capstan::strategy
