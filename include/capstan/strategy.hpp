// strategy.hpp -- ParameterServerStrategy: creates variables on the ps.
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
#include "capstan/dtype.hpp"
#include "capstan/partitioners.hpp"
#include "capstan/replica.hpp"
#include "capstan/variable.hpp"

namespace capstan {

class ClusterResolver;

namespace strategy {
class Strategy;
}

/// Selects the ps of the next shard.
enum class Placement : std::uint8_t {
  round_robin,  ///< the next ps, whatever the sizes: TensorFlow's rule
  by_bytes,     ///< the ps with the fewest bytes of values and slots; if several, the first
};

struct StrategyOptions {
  /// Decides into how many shards each variable is divided; none: one shard.
  Partitioner variable_partitioner = {};
  Placement placement = Placement::round_robin;
  /// Memory of variables whose own options do not set it.
  ShardMemory memory = ShardMemory::host;
  /// VariableOptions::communication_dtype of float variables and tables whose own options do not set it. The
  /// constructor throws Error(invalid_argument) unless it is float32 or bfloat16.
  std::optional<DType> communication_dtype = {};
  /// VariableOptions::int8_lookups of float variables and tables whose own options do not set it.
  bool int8_lookups = false;
  /// Number of GPUs that the replicas of each worker compute on. Replicas are set up when their rank starts,
  /// so this must match how the job was started: N for `--replicas=N --replica-device=gpu`, 0 for
  /// `--replica-device=host`. The constructor throws Error(invalid_argument) otherwise. none: not checked.
  std::optional<int> num_gpus_per_worker = {};
};

/// Load of one ps: its current contents, and counts since its start.
struct PsLoad {
  int ps = 0;
  std::string host;
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;   ///< of values and slots
  std::uint64_t pushes = 0;  ///< applied pushes of all ranks
  std::uint64_t rows_pushed = 0;
  std::uint64_t bytes_pushed = 0;  ///< of gradients as the ps applies them, in the dtype of the variable
  /// Rows sent as messages, for lookups and pulls. Reads that bypass the ps (from mapped memory on its host,
  /// or by RMA) are not counted: see docs/variables.md.
  std::uint64_t rows_sent = 0;
  /// Names of its shards, such as "w/part_0", in the order in which their variables were created.
  std::vector<std::string> shard_names = {};
};

/// Creates variables on the ps, shard by shard, while one of its scopes is open. Made on the coordinator.
/// The base class Replicas provides `run`, `reduce` and the other calls on replicas.
///
/// A cluster has one strategy at a time. Destroying it ends the job for every other rank, so a job of several
/// processes can have only one. In an embedded cluster another strategy may follow; it starts new ps and
/// workers, without the variables of its predecessor. Strategies of different embedded clusters may coexist.
class CAPSTAN_API ParameterServerStrategy : public Replicas {
 public:
  /// Throws Error: failed_precondition on a rank other than the coordinator, while the cluster has another
  /// strategy, and, in a job of several processes, also after another strategy was destroyed;
  /// invalid_argument for options that do not match the job.
  explicit ParameterServerStrategy(const Cluster& cluster, StrategyOptions options = {});
  /// As above, with a partitioner as the only option.
  template <std::convertible_to<Partitioner> P>
  ParameterServerStrategy(const Cluster& cluster, P variable_partitioner)
      : ParameterServerStrategy(cluster,
                                StrategyOptions{.variable_partitioner = std::move(variable_partitioner)}) {}
  ~ParameterServerStrategy();
  ParameterServerStrategy(ParameterServerStrategy&&) noexcept;
  ParameterServerStrategy& operator=(ParameterServerStrategy&&) = delete;

  /// While it lives, variables that this thread creates belong to this strategy. Scopes of one strategy nest;
  /// opening one inside the scope of another strategy throws Error(failed_precondition). Scopes must end in
  /// the reverse order of their creation; otherwise the program is aborted.
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

  /// While it lives, each new variable of this strategy is placed in one shard on one ps, without advancing
  /// the round-robin placement.
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
  /// Places new variables on the ps of a shard of `variable`. Throws Error: invalid_argument for a variable
  /// of another strategy, out_of_range for a shard that does not exist.
  [[nodiscard]] Colocation colocate_vars_with(const AnyVariable& variable, std::size_t shard = 0);
  bool variable_created_in_scope(const AnyVariable& variable) const;

  /// The cluster in TensorFlow's terms: as the resolver or TF_CONFIG described it when the cluster was
  /// joined; otherwise the current ranks, with host names as addresses (an MpiClusterResolver, which holds
  /// the Cluster).
  std::shared_ptr<const ClusterResolver> cluster_resolver() const;

  /// Names of variables, in order of creation.
  std::vector<std::string> variables(bool trainable_only = false) const;
  /// Queries every ps. Throws Error: unavailable, deadline_exceeded.
  std::vector<PsLoad> loads();
  /// loads() as a table with one line per ps and the names of its first few shards.
  std::string describe_loads();

  /// Internal: for the layers above, not for programs.
  strategy::Strategy& implementation() noexcept { return *implementation_; }

 private:
  std::unique_ptr<strategy::Strategy> implementation_;
};

}  // namespace capstan
