// queue_test.cpp -- waiting lines compared with the closed formulas.
#include "simulate/queue.hpp"

#include <gtest/gtest.h>

#include "capstan/error.hpp"
#include "simulate/random_source.hpp"

namespace capstan::simulate {
namespace {

constexpr double kQueueTestEnd = 100'000;  // seconds

/// Adds jobs by a Poisson process of 1 job/s with a service time of mean `load` seconds until the end.
struct Arrivals {
  Simulation simulation;
  RandomSource random{3};
  Queue queue;
  double load;
  bool deterministic;
  double latency_sum = 0;
  double latency_squares = 0;
  int done = 0;

  Arrivals(std::size_t servers, double load_, bool deterministic_, bool random_order = false)
      : queue(simulation, servers, random_order ? &random : nullptr),
        load(load_),
        deterministic(deterministic_) {
    arrive_later();
    simulation.run_until(kQueueTestEnd);
  }
  void arrive_later() {
    simulation.after(random.exponential(1), [this] {
      const double arrival = simulation.now();
      queue.add(deterministic ? load : random.exponential(load), [this, arrival] {
        const double latency = simulation.now() - arrival;
        latency_sum += latency;
        latency_squares += latency * latency;
        ++done;
      });
      arrive_later();
    });
  }
};

TEST(SimulatedQueue, AgreesWithMm1) {
  const Arrivals run(1, 0.7, false);
  // Waiting jobs: rho^2 / (1 - rho). Time of a job: s / (1 - rho).
  EXPECT_NEAR(run.queue.mean_waiting(), 0.49 / 0.3, 0.05 * 0.49 / 0.3);
  EXPECT_NEAR(run.latency_sum / run.done, 0.7 / 0.3, 0.05 * 0.7 / 0.3);
  EXPECT_NEAR(run.queue.utilization(), 0.7, 0.01);
}

TEST(SimulatedQueue, AgreesWithMd1) {
  const Arrivals run(1, 0.7, true);
  // Pollaczek-Khinchine without variance: half of M/M/1.
  EXPECT_NEAR(run.queue.mean_waiting(), 0.49 / 0.6, 0.05 * 0.49 / 0.6);
  EXPECT_NEAR(run.latency_sum / run.done, 0.7 + 0.49 / 0.6, 0.05 * (0.7 + 0.49 / 0.6));
}

TEST(SimulatedQueue, AgreesWithMm2) {
  const Arrivals run(2, 1.4, false);
  // Erlang C for two servers: waiting jobs are 2 rho^3 / (1 - rho^2).
  const double expected = 2 * 0.343 / (1 - 0.49);
  EXPECT_NEAR(run.queue.mean_waiting(), expected, 0.06 * expected);
  EXPECT_NEAR(run.queue.utilization(), 0.7, 0.01);
}

TEST(SimulatedQueue, RandomOrderHasTheSameMeanAndALargerVariance) {
  const Arrivals ordered(1, 0.7, false);
  const Arrivals random(1, 0.7, false, true);
  EXPECT_NEAR(random.queue.mean_waiting(), 0.49 / 0.3, 0.05 * 0.49 / 0.3);
  EXPECT_NEAR(random.latency_sum / random.done, 0.7 / 0.3, 0.05 * 0.7 / 0.3);
  EXPECT_GT(random.latency_squares / random.done, 1.1 * ordered.latency_squares / ordered.done);
}

TEST(SimulatedQueue, ServesInTheOrderOfArrival) {
  Simulation simulation;
  Queue queue(simulation, 1);
  std::vector<double> ends;
  for (const double service : {3.0, 1.0, 2.0}) queue.add(service, [&] { ends.push_back(simulation.now()); });
  EXPECT_EQ(queue.waiting(), 2u);
  simulation.run_until(10);
  EXPECT_EQ(ends, (std::vector<double>{3, 4, 6}));
}

TEST(SimulatedQueue, RepeatsARunForASeed) {
  const Arrivals a(1, 0.7, false);
  const Arrivals b(1, 0.7, false);
  EXPECT_EQ(a.latency_sum, b.latency_sum);
  EXPECT_EQ(a.simulation.events(), b.simulation.events());
}

TEST(SimulatedQueue, RejectsAQueueWithoutServers) {
  Simulation simulation;
  EXPECT_THROW(Queue(simulation, 0), Error);
}

}  // namespace
}  // namespace capstan::simulate
