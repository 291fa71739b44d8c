// cluster.hpp -- which ranks there are, and what this one is.
//
// `Cluster::join` is the first thing a program does. The same binary runs as every role:
//
//   cs::Cluster cluster = cs::Cluster::join(argc, argv);
//   if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/cluster_options.hpp"
#include "capstan/export.hpp"

namespace capstan {

class ClusterResolver;
namespace cluster {
class Runtime;
}

/// Sent over the wire: add at the end, never renumber.
enum class Role : std::uint8_t { coordinator = 0, ps = 1, worker = 2, evaluator = 3, spare = 4 };

CAPSTAN_API std::string_view to_string(Role role) noexcept;

/// One rank's place in the cluster. Movable; the last copy that anything holds ends this rank's membership.
class CAPSTAN_API Cluster {
 public:
  /// Finds out how the program was started and takes its place:
  ///  * by mpirun or srun with three ranks or more: the process splits into an agent, which
  ///    supervises, and its child, which is where this call returns. MPI is finished before it returns. The
  ///    agent of a worker that dies starts it again: another return from here, in a new process. So does
  ///    the coordinator's, where --coordinator-wait is set.
  ///  * as one of the tasks of TF_CONFIG, by hand or by another scheduler, without MPI: all tasks meet at the
  ///    address of the chief, which is the coordinator. Each has its agent, and nobody else to end it.
  ///  * by `capstan join RUN_DIR`, or with CAPSTAN_JOIN=RUN_DIR: as one more worker of a job that runs with
  ///    --run-dir RUN_DIR. SIGTERM lets it end what it is at, and leave.
  ///  * alone: every role in this process (`embedded()`), no launcher needed.
  /// Call it first in main, before any thread is started. Settings are the arguments
  /// `--capstan-NAME=VALUE`, which are taken out, then CAPSTAN_* variables, then the file of CAPSTAN_CONFIG,
  /// then `options`: the first of these that gives a setting counts. Throws Error: invalid_argument for two
  /// ranks or roles that do not fit, deadline_exceeded with their names when ranks are missing,
  /// failed_precondition when binaries differ, when a rank of a job calls it again, or srun has started
  /// several tasks that cannot reach MPI.
  static Cluster join(int& argc, char** argv, const ClusterOptions& options = {});
  /// The same without arguments.
  static Cluster join(const ClusterOptions& options);
  /// As the task that the resolver describes, whatever started this process: the tasks meet at the chief's
  /// address, as they do with TF_CONFIG. A process that `capstan join` started is one more worker all the
  /// same. Arguments and settings as above. Throws Error(invalid_argument) as validate_cluster does, and for
  /// a description without the task of this process or without a chief.
  static Cluster join(int& argc, char** argv, const ClusterResolver& resolver,
                      const ClusterOptions& options = {});
  static Cluster join(const ClusterResolver& resolver, const ClusterOptions& options = {});

  explicit Cluster(std::shared_ptr<cluster::Runtime> runtime) : runtime_(std::move(runtime)) {}

  Role role() const noexcept;
  /// Among the ranks of the same role, from 0.
  int index() const noexcept;
  /// Of the ranks that were there at the start, as `size`.
  int count(Role role) const noexcept;
  int rank() const noexcept;
  int size() const noexcept;
  /// This coordinator was started again in place of one that was killed (--coordinator-wait). Ps and workers
  /// have gone on: create the same variables and counters again, under the same names, which finds them as
  /// they are; assign nothing, and go on after recorded_step(). docs/failures.md says what holds then.
  bool recovered() const noexcept;
  /// The last step of ClusterCoordinator::record_step, in this process or an earlier one; nothing before the
  /// first, and since a checkpoint was restored. Of the coordinator. Throws Error(data_loss) in one that is
  /// back and cannot go on from there, as more than 50,000 functions were scheduled since: restore a
  /// checkpoint.
  std::optional<std::int64_t> recorded_step() const;
  /// Every role in this process.
  bool embedded() const noexcept;
  /// "ps 1 (rank 2 on node17)"
  std::string name() const;

  /// For the layers above; not for programs.
  const std::shared_ptr<cluster::Runtime>& runtime() const noexcept { return runtime_; }

 private:
  std::shared_ptr<cluster::Runtime> runtime_;
};

}  // namespace capstan
