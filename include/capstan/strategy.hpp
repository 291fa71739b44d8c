// strategy.hpp -- ParameterServerStrategy: where variables go.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capstan/cluster.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/partitioners.hpp"
#include "capstan/replica.hpp"
#include "capstan/variable.hpp"

namespace capstan {

class ClusterResolver;

namespace strategy {
class Strategy;
}

/// Which ps the next shard goes to.
enum class Placement : std::uint8_t {
  round_robin,  ///< the next one, whatever the sizes: TensorFlow's rule
  by_bytes,     ///< the one with the fewest bytes of values and slots, the first of equals
};

struct StrategyOptions {
  /// Into how many shards each variable is cut; none leaves variables whole.
  Partitioner variable_partitioner = {};
  Placement placement = Placement::round_robin;
  /// Of the variables whose options say nothing else.
  ShardMemory memory = ShardMemory::host;
  /// GPUs that the replicas of each worker compute on. Replicas are set up when their rank starts, so this
  /// states what the job was started with: N for `--replicas=N --replica-device=gpu`, 0 for
  /// `--replica-device=host`. A strategy with another number throws Error(invalid_argument). none: any.
  std::optional<int> num_gpus_per_worker = {};
};

/// What one ps holds, and what it has done so far.
struct PsLoad {
  int ps = 0;
  std::string host;
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;   ///< of values and slots
  std::uint64_t pushes = 0;  ///< applied, from all ranks
  std::uint64_t rows_pushed = 0;
  std::uint64_t bytes_pushed = 0;
  /// By messages, to lookups and pulls. Ranks that map the ps's memory (those on its host) and pulls by RMA
  /// read without it, and what they read is not counted: see docs/variables.md.
  std::uint64_t rows_sent = 0;
  /// Of its shards, in the order of their variables' creation: "w/part_0".
  std::vector<std::string> shard_names = {};
};

/// Made on the coordinator. Variables that are created while a scope is open go to the ps, shard by shard.
/// `run`, `reduce` and the other calls on replicas are Replicas'.
///
/// A cluster has one strategy at a time. Its end tells every other rank that the job is over, so a job of
/// several processes has one strategy, until the program ends. In an embedded cluster another strategy may
/// follow, which begins with new ps and workers: nothing of the earlier one's variables is left. Strategies
/// of different embedded clusters may live side by side.
class CAPSTAN_API ParameterServerStrategy : public Replicas {
 public:
  /// Throws Error: failed_precondition on another rank than the coordinator, while the cluster has another
  /// strategy, and in a job of several processes also after that one has ended; invalid_argument for options
  /// that do not fit the job.
  explicit ParameterServerStrategy(const Cluster& cluster, StrategyOptions options = {});
  /// With a partitioner and no other option.
  template <std::convertible_to<Partitioner> P>
  ParameterServerStrategy(const Cluster& cluster, P variable_partitioner)
      : ParameterServerStrategy(cluster,
                                StrategyOptions{.variable_partitioner = std::move(variable_partitioner)}) {}
  ~ParameterServerStrategy();
  ParameterServerStrategy(ParameterServerStrategy&&) noexcept;
  ParameterServerStrategy& operator=(ParameterServerStrategy&&) = delete;

  /// While it lives, variables of this thread are created by this strategy. Scopes of one strategy nest;
  /// opening one inside the scope of another strategy throws Error(failed_precondition). Scopes end in the
  /// reverse order of their beginning; another order stops the program.
  class Scope {
   public:
    explicit Scope(strategy::Strategy* strategy);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    strategy::Strategy* outer_;
    strategy::Strategy* strategy_;
  };
  [[nodiscard]] Scope scope() { return Scope(implementation_.get()); }

  /// While it lives, this strategy's new variables are put whole on one ps, and the next shard's place does
  /// not move on.
  class Colocation {
   public:
    Colocation(strategy::Strategy* strategy, int ps);
    ~Colocation();
    Colocation(const Colocation&) = delete;
    Colocation& operator=(const Colocation&) = delete;

   private:
    strategy::Strategy* strategy_;
    int outer_;
  };
  /// Beside a shard of `variable`. Throws Error: invalid_argument for a variable that is not this strategy's,
  /// out_of_range for a shard that it does not have.
  [[nodiscard]] Colocation colocate_vars_with(const AnyVariable& variable, std::size_t shard = 0);
  bool variable_created_in_scope(const AnyVariable& variable) const;

  /// The cluster in TensorFlow's words. Where it was joined by a resolver or TF_CONFIG, what that said then;
  /// else the ranks as they are, with host names for addresses (MpiClusterResolver, which holds the Cluster).
  std::shared_ptr<const ClusterResolver> cluster_resolver() const;

  /// Names of variables, in the order of their creation.
  std::vector<std::string> variables(bool trainable_only = false) const;
  /// Asks every ps. Throws Error: unavailable, deadline_exceeded.
  std::vector<PsLoad> loads();
  /// The same as a table, a line a ps, with the names of its first few shards.
  std::string describe_loads();

  /// For the layers above; not for programs.
  strategy::Strategy& implementation() noexcept { return *implementation_; }

 private:
  std::unique_ptr<strategy::Strategy> implementation_;
};

}  // namespace capstan
