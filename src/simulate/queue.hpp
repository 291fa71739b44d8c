// queue.hpp -- servers that share one waiting line.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

#include "simulate/random_source.hpp"
#include "simulate/simulation.hpp"

namespace capstan::simulate {

/// Serves jobs by a number of equal servers, in the order of their arrival or in random order. The order
/// changes no mean, but random order makes long waits more frequent. Models the cores of a host, whose
/// scheduler does not serve threads in the order of arrival. The simulation must outlive the queue, and the
/// queue all actions of the simulation.
class Queue {
 public:
  using Service = std::function<double()>;

  /// `order` draws the next job, and must outlive the queue; null: in the order of arrival. Throws
  /// Error(invalid_argument) if there are no servers.
  Queue(Simulation& simulation, std::size_t servers, RandomSource* order = nullptr);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Adds a job that occupies a server for `service` seconds. Then calls `done`.
  void add(double service, Simulation::Action done) {
    add([service] { return service; }, std::move(done));
  }
  /// Adds a job whose seconds `service` returns when a server begins it.
  void add(Service service, Simulation::Action done);

  /// Number of jobs that wait for a server.
  std::size_t waiting() const noexcept { return waiting_.size(); }
  /// Mean number of jobs that waited, over the time since the start.
  double mean_waiting() const;
  /// Mean share of the servers that were busy, over the time since the start.
  double utilization() const;

 private:
  struct Job {
    Service service;
    Simulation::Action done;
  };

  void start(Job job);
  void account();

  Simulation& simulation_;
  std::size_t servers_;
  RandomSource* order_;
  std::size_t busy_ = 0;
  std::deque<Job> waiting_;
  double accounted_ = 0;     // time up to which the areas below count
  double waiting_area_ = 0;  // jobs x seconds
  double busy_area_ = 0;     // servers x seconds
};

}  // namespace capstan::simulate
