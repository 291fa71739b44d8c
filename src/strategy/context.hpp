// context.hpp -- what code on a rank reaches parameters through: a client, and the variables that it knows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "client/client.hpp"
#include "shard/descriptor.hpp"
#include "strategy/gradient_filter.hpp"

namespace capstan::strategy {

class Context;

/// A variable together with the rank's way to it.
struct BoundVariable {
  shard::VariableDescriptor descriptor;
  Context* context = nullptr;
  bool on_coordinator = false;  // in its process alone, out of every other rank's reach
};

/// One for each thread that runs user code: the coordinator's, and each worker's. Lives longer than the
/// handles that are bound to it.
class Context {
 public:
  explicit Context(std::shared_ptr<cluster::Runtime> runtime) : client_(std::move(runtime)) {}

  client::Client& client() noexcept { return client_; }
  GradientFilter& gradients() noexcept { return gradients_; }
  const cluster::Runtime& runtime() const noexcept { return client_.runtime(); }

  std::shared_ptr<const BoundVariable> add(shard::VariableDescriptor descriptor, bool on_coordinator = false);
  /// Throws Error(internal) when this rank has not heard of it.
  std::shared_ptr<const BoundVariable> find(std::uint32_t id) const;

  /// The calling thread's, or null.
  static Context* current_or_null() noexcept;
  /// The calling thread's. Throws Error(failed_precondition) on a thread that has none.
  static Context& current();
  static void set_current(Context* context) noexcept;

 private:
  client::Client client_;
  GradientFilter gradients_{client_.runtime().settings()};
  std::map<std::uint32_t, std::shared_ptr<const BoundVariable>> variables_;
};

}  // namespace capstan::strategy
