// strategy.hpp -- ParameterServerStrategy: where variables go.
#pragma once

#include <memory>

#include "capstan/cluster.hpp"
#include "capstan/partitioners.hpp"
#include "capstan/replica.hpp"
#include "capstan/variable.hpp"

namespace capstan {

namespace strategy {
class Strategy;
}

struct StrategyOptions {
  /// Into how many shards each variable is cut; none leaves variables whole.
  Partitioner variable_partitioner = {};
};

/// Made on the coordinator, once. Variables that are created while a scope is open go to the ps, shard by
/// shard, round robin. Its end tells every other rank that the job is over. `run`, `reduce` and the other
/// calls on replicas are Replicas'.
class ParameterServerStrategy : public Replicas {
 public:
  /// Throws Error(failed_precondition) on another rank than the coordinator.
  explicit ParameterServerStrategy(const Cluster& cluster, StrategyOptions options = {});
  ~ParameterServerStrategy();
  ParameterServerStrategy(ParameterServerStrategy&&) noexcept;
  ParameterServerStrategy& operator=(ParameterServerStrategy&&) = delete;

  /// While it lives, variables of this thread are created by this strategy. Scopes of one strategy nest;
  /// opening one inside the scope of another strategy throws Error(failed_precondition).
  class Scope {
   public:
    explicit Scope(strategy::Strategy* strategy);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    strategy::Strategy* outer_;
  };
  [[nodiscard]] Scope scope() { return Scope(implementation_.get()); }

  /// For the layers above; not for programs.
  strategy::Strategy& implementation() noexcept { return *implementation_; }

 private:
  std::unique_ptr<strategy::Strategy> implementation_;
};

}  // namespace capstan
