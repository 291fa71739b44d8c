// report.cpp -- tables of bounds and of numbers of ps.
#include "launch/plan/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "launch/units.hpp"

namespace capstan::launch::plan {
namespace {

std::string line(const simulate::PlannedJob& job, bool chosen) {
  return fmt::format("  {:<8}{:>10}{:>18}{:>12}{:>17}{:>16}\n",
                     fmt::format("{}{}", job.ps, chosen ? " *" : ""), seconds_text(job.prediction.step_time),
                     rate_text(job.prediction.rate, "steps"),
                     fmt::format("{:.0f} %", 100 * job.prediction.ps_busy),
                     fmt::format("{:.0f} %", 100 * job.prediction.coordinator_busy), size_text(job.ps_bytes));
}

nlohmann::json as_json(const simulate::PlannedJob& job) {
  nlohmann::json bounds = nlohmann::json::object();
  for (const simulate::StepBound& bound : job.bounds) bounds[bound.resource] = bound.seconds;
  return {{"ps", job.ps},
          {"step_seconds", job.prediction.step_time},
          {"steps_per_second", job.prediction.rate},
          {"bound_by", job.largest.resource},
          {"least_step_seconds", std::move(bounds)},
          {"ps_busy", job.prediction.ps_busy},
          {"coordinator_busy", job.prediction.coordinator_busy},
          {"ps_bytes", job.ps_bytes}};
}

}  // namespace

std::string report(const simulate::PlanRequest& request, const simulate::Plan& plan) {
  const simulate::PlannedJob& chosen = plan.chosen;
  std::string text = fmt::format("{} workers, {} ps: {} a step, {}; bound by: {}\n\n", request.job.workers,
                                 chosen.ps, seconds_text(chosen.prediction.step_time),
                                 rate_text(chosen.prediction.rate, "steps"), chosen.largest.resource);
  std::vector<simulate::StepBound> bounds = chosen.bounds;
  std::sort(bounds.begin(), bounds.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  text += fmt::format("  {:<40}{}\n", "resource", "least time of a step");
  for (const simulate::StepBound& bound : bounds) {
    text += fmt::format("  {:<40}{}\n", bound.resource, seconds_text(bound.seconds));
  }
  text += fmt::format("\n  {:<8}{:>10}{:>18}{:>12}{:>17}{:>16}\n", "ps", "step", "rate", "ps busy",
                      "coordinator busy", "rows of a ps");
  std::vector<const simulate::PlannedJob*> jobs{&chosen};
  for (const simulate::PlannedJob& other : plan.others) jobs.push_back(&other);
  std::sort(jobs.begin(), jobs.end(), [](const auto* a, const auto* b) { return a->ps < b->ps; });
  for (const simulate::PlannedJob* job : jobs) text += line(*job, job == &chosen);
  return text + "\nA simulation with measured constants; docs/simulation.md states its errors.\n";
}

nlohmann::json report_json(const simulate::PlanRequest& request, const simulate::Plan& plan) {
  nlohmann::json json = as_json(plan.chosen);
  json["workers"] = request.job.workers;
  json["others"] = nlohmann::json::array();
  for (const simulate::PlannedJob& other : plan.others) json["others"].push_back(as_json(other));
  return json;
}

}  // namespace capstan::launch::plan
