// late_workers.cpp -- answers requests, and writes the run file.
#include "coordinator/recovery/late_workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/bootstrap/connect_to_job.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "cluster/bootstrap/socket.hpp"

namespace capstan::coordinator {
namespace {

using cluster::JoinAnswer;
using cluster::JoinRequest;

/// Time within which another running job would answer.
constexpr std::chrono::seconds kOtherJobAnswers{1};

void refuse_if_in_use(const std::string& run_dir) {
  try {
    const cluster::RunFile other = cluster::read_run_file(run_dir);
    const auto deadline = std::chrono::steady_clock::now() + kOtherJobAnswers;
    (void)cluster::ask_join_listener(other.address, other.token, JoinRequest::status, {}, deadline);
  } catch (const Error& error) {
    if (error.code() == Code::permission_denied) throw;
    return;  // no file, or one of a job that was killed
  }
  throw Error(Code::already_exists,
              fmt::format("--run-dir {}: another running job uses it; give each job its own", run_dir));
}

}  // namespace

void LateWorkers::open() {
  run_dir_ = runtime_.settings().text("run-dir");
  if (run_dir_.empty()) return;
  refuse_if_in_use(run_dir_);
  build_ = cluster::make_hello().build;
  file_ = cluster::run_file_of_this_process();
  std::string address = runtime_.settings().text("join-address");
  if (address.empty())
    address = runtime_.membership().single_host() ? "127.0.0.1" : cluster::address_of_this_host();
  listener_ = std::make_unique<cluster::JoinListener>(
      address, file_.token,
      [this](JoinRequest request, std::span<const std::byte> body) { return answer(request, body); },
      [tag = runtime_.log_tag()] { log::set_rank_tag(tag); }, cluster::JoinListener::Limits());
  const cluster::Table& table = runtime_.table();
  // Counts workers that joined a previous process of this coordinator.
  for (const int rank : runtime_.membership().worker_ranks()) {
    if (table.is_late(rank)) joined_ = std::max<int>(joined_, rank - table.rank_of_late(1) + 1);
  }
  file_.address = listener_->address();
  cluster::write_run_file(run_dir_, file_);
}

void LateWorkers::close() noexcept {
  closed_ = true;
  if (!listener_) return;
  cluster::remove_run_file(run_dir_, file_.host, file_.pid);
  listener_.reset();
}

JoinAnswer LateWorkers::answer(JoinRequest request, std::span<const std::byte> body) {
  switch (request) {
    case JoinRequest::status:
      return {Code::ok, status_(), {}};
    case JoinRequest::metrics:
      return {Code::ok, metrics_(), {}};
    case JoinRequest::join:
      return {Code::ok, {}, to_bytes(add(from_bytes<cluster::Hello>(body)))};
    case JoinRequest::start:
      throw Error(Code::failed_precondition, "the job has started already");
  }
  return {Code::unimplemented, "unknown request", {}};
}

cluster::Table LateWorkers::add(const cluster::Hello& hello) {
  cluster::Table table = runtime_.membership().table_now();
  if (runtime_.in_process()) {
    throw Error(Code::failed_precondition,
                "this job runs in one process, which workers cannot join; start it with mpirun");
  }
  if (hello.build != build_) {
    throw Error(Code::failed_precondition,
                fmt::format("the program on {} is a different build than the job's, {} on {}", hello.host,
                            file_.program, file_.host));
  }
  if (hello.replicas != runtime_.settings().integer("replicas")) {
    throw Error(Code::invalid_argument,
                fmt::format("a worker on {} has --replicas={}, expected {}", hello.host, hello.replicas,
                            runtime_.settings().integer("replicas")));
  }
  if (hello.control_address.empty() || hello.data_address.empty()) {
    throw Error(Code::invalid_argument, "the request of a worker to join has no control or data address");
  }
  if (joined_ >= table.late) {
    throw Error(Code::resource_exhausted,
                fmt::format("all {} late workers have joined already (--late-workers)", table.late));
  }
  table.rank = table.rank_of_late(++joined_);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({table.rank, Role::worker, table.index_of(table.rank), hello.host, hello.pid,
                        hello.control_address, hello.data_address});
    any_ = true;
  }
  on_join_();
  return table;
}

std::vector<cluster::Member> LateWorkers::take() {
  const std::lock_guard lock(mutex_);
  any_ = false;
  return std::exchange(waiting_, {});
}

}  // namespace capstan::coordinator
