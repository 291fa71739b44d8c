// doctor.cpp -- the order of things: what each rank sees alone, then what ranks see of each other, then the
// table.
#include "launch/doctor/doctor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "cluster/runtime.hpp"
#include "launch/doctor/adapters.hpp"
#include "launch/doctor/checkpoint_folder.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/doctor/gathering.hpp"
#include "launch/doctor/gpu.hpp"
#include "launch/doctor/host_names.hpp"
#include "launch/doctor/job_checks.hpp"
#include "launch/doctor/keeper.hpp"
#include "launch/doctor/launchers.hpp"
#include "launch/doctor/pair_judge.hpp"
#include "launch/doctor/pair_work.hpp"
#include "launch/doctor/report.hpp"
#include "launch/doctor/ucx_look.hpp"
#include "launch/exit_codes.hpp"
#include "launch/launcher_rank.hpp"

namespace capstan::launch::doctor {
namespace {

[[noreturn]] void end(int code) {
  std::fflush(nullptr);
  _exit(code);
}

/// Returns standard output, for the report; what others write there goes to standard error from now on, as
/// MPI and UCX before Capstan has set its log handler do.
int keep_output_for_the_report() {
  const int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) throw call_failed("dup2", std::strerror(errno));
  return output;
}

class Doctor {
 public:
  explicit Doctor(const Request& request)
      : request_(request), output_(keep_output_for_the_report()), launched_(launched_by()) {
    report_.hosts = {cluster::host_name()};
  }

  /// `leave` gets what this rank has found alone, and then, when the table is out or another rank's task,
  /// nothing.
  [[noreturn]] void examine(const Leave& leave) {
    // Before there is a thread, or MPI or UCX was used.
    std::unique_ptr<Gathering> second;
    if (is_alone() && wants_pairs())
      second = gather_with_a_second_process([this](Gathering& us) { try_pairs(us); });
    own_.findings = run_local_checks(request_);
    own_.host = cluster::host_name();
    leave(to_bytes(own_));
    try {
      if (cluster::launched_ranks())
        gathering_ = gather_by_mpi([this](const std::string& why) { give_up(why); });
      if (ranks() > 1) {
        ask_all();
      } else {
        report_.add({own_});
      }
      judge_together();
      if (wants_pairs()) judge_pairs(second.get());
    } catch (const Error& error) {
      give_up(error.what());
    }
    const bool speaks = rank() == 0 && launcher_rank() == 0;  // of N processes that are each rank 0, one
    const int code = speaks ? print() : 0;
    leave({});
    second.reset();
    gathering_.reset();
    end(code);
  }

  /// The last word on a child that did examine.
  [[noreturn]] void conclude(const Remains& remains) {
    const bool told = remains.left.size() == 2;
    if (told || remains.exit_code == static_cast<int>(Exit::environment)) end(remains.exit_code);
    if (!remains.left.empty()) own_ = from_bytes<RankFindings>(remains.left.front());
    if (remains.terminated)
      give_up("the launcher has ended all ranks before their time: one of them died, or was never there");
    const std::string how = remains.exit_code > 128 ? fmt::format("signal {}", remains.exit_code - 128)
                                                    : fmt::format("exit code {}", remains.exit_code);
    if (launcher_rank() != 0)
      std::fprintf(stderr, "capstan: rank %d: MPI or UCX has ended the process, %s\n", launcher_rank(),
                   how.c_str());
    give_up(fmt::format("MPI or UCX has ended the process ({}); standard error may say why", how));
  }

 private:
  int rank() const { return gathering_ ? gathering_->rank() : 0; }
  int ranks() const { return gathering_ ? gathering_->size() : 1; }
  bool wants(std::string_view check) const { return wanted(check, request_.only); }

  bool wants_pairs() const { return wants("transports") || wants("rma") || wants("speed"); }
  /// Not one of several that make no world together.
  bool is_alone() const {
    return cluster::launched_ranks().value_or(1) == 1 && (!launched_ || launched_->ranks == 1);
  }

  struct Pairs {
    std::vector<Link> links;
    std::vector<Speed> speeds;
    std::vector<Probe> probes;
  };

  /// Collective.
  Pairs try_pairs(Gathering& ranks) const {
    PairWork work(ranks);
    Pairs pairs;
    if (wants("transports")) pairs.links = work.links();
    if (wants("speed")) pairs.speeds = work.speeds();
    if (wants("rma")) pairs.probes = work.probes();
    ranks.meet("all pairs to be done");
    return pairs;
  }

  void judge_pairs(Gathering* second) {
    Pairs pairs;
    if (second != nullptr) {
      try {
        pairs = try_pairs(*second);
      } catch (const Error& error) {
        Finding finding =
            fail(error.what(), "it died or hung in UCX: UCX_LOG_LEVEL=info capstan settings --transports");
        finding.check = "transports";
        report_.add(finding);
        return;
      }
    } else if (ranks() > 1) {
      pairs = try_pairs(*gathering_);
    }
    const auto ports = read_adapters("/sys");
    const bool has_adapter =
        std::any_of(ports.begin(), ports.end(), [](const AdapterPort& port) { return port.active(); });
    const auto add_all = [&](const char* check, std::vector<Finding> findings) {
      for (Finding& finding : findings) add(check, [&] { return std::move(finding); });
    };
    add_all("transports", judge_links(pairs.links, has_adapter));
    add_all("rma", judge_probes(pairs.probes));
    add_all("speed", judge_speeds(pairs.speeds));
    report_.measurements = measurements(pairs.speeds);
  }

  void ask_all() {
    own_.rank = rank();
    std::vector<RankFindings> all;
    for (const Blob& blob : gathering_->gather_at_zero(to_bytes(own_), "the checks of all ranks"))
      all.push_back(from_bytes<RankFindings>(blob));
    report_.add(all);
  }

  void judge_together() {
    add("ranks", [&] { return judge_ranks(launched_, gathering_ ? std::optional(ranks()) : std::nullopt); });
    const Doorway door;
    RankFacts mine = own_facts();
    mine.port = door.port();
    std::vector<RankFacts> facts{mine};
    if (ranks() > 1) {
      facts.clear();
      for (const Blob& blob : gathering_->all_gather(to_bytes(mine), "what all ranks say of themselves"))
        facts.push_back(from_bytes<RankFacts>(blob));
    }
    report_.ranks = ranks();
    report_.hosts.clear();
    for (const HostRanks& host : by_host(facts)) report_.hosts.push_back(host.host);
    add("binary", [&] { return judge_binary(facts); });
    add("ipc", [&] { return judge_ipc(facts); });
    if (wants("binding")) report_.add(bindings(facts));
    const bool several = report_.hosts.size() > 1;
    add("clock", [&] {
      return judge_clocks(several ? measure_clocks(*gathering_, facts) : std::vector<ClockOffset>());
    });
    add("ports", [&] { return several ? check_ports(*gathering_, facts) : judge_knocks({}); });
    const std::string folder = checkpoint_folder(request_);
    add("shared-dir", [&] {
      return several && !folder.empty()
                 ? check_shared_folder(*gathering_, facts, folder)
                 : judge_shared_folder(folder, static_cast<int>(report_.hosts.size()), {}, {});
    });
  }

  /// As findings of the ranks, so that hosts with the same are told as one.
  static std::vector<RankFindings> bindings(const std::vector<RankFacts>& facts) {
    const std::vector<HostRanks> hosts = by_host(facts);
    std::vector<Finding> findings = judge_binding(facts);
    std::vector<RankFindings> of_ranks;
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      findings[host].check = "binding";
      for (const int rank : hosts[host].ranks) of_ranks.push_back({rank, hosts[host].host, {findings[host]}});
    }
    return of_ranks;
  }

  /// Every rank calls `judge`, since it may be collective.
  template <class Judge>
  void add(const char* check, Judge&& judge) {
    if (!wants(check)) return;
    Finding finding = judge();
    finding.check = check;
    report_.add(finding);
  }

  /// Ranks cannot be brought together: says what is known.
  [[noreturn]] void give_up(const std::string& why) {
    // From the thread that waits or from the one that watches it, not from both.
    static std::mutex once;
    once.lock();
    if (launcher_rank() == 0) {
      if (report_.lines.empty()) report_.add({own_});
      if (launched_) report_.ranks = launched_->ranks;
      Finding finding =
          fail(why,
               "another MPI's launcher, or srun without --mpi=pmix; a host that does not answer, a firewall, "
               "or MPI over the wrong interface (btl_tcp_if_include, UCX_NET_DEVICES)");
      finding.check = "ranks";
      report_.add(finding);
      (void)print();
    }
    end(static_cast<int>(Exit::environment));
  }

  int print() const {
    const std::string text =
        request_.json ? report_.json().dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                      : report_.text();
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t put = ::write(output_, rest.data(), rest.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) {
        std::fprintf(stderr, "capstan: standard output: %s\n", std::strerror(errno));
        break;
      }
      rest.remove_prefix(static_cast<std::size_t>(put));
    }
    return report_.exit_code();
  }

  Request request_;
  int output_;
  std::optional<Launched> launched_;
  std::unique_ptr<Gathering> gathering_;
  RankFindings own_;
  Report report_;
};

}  // namespace

void run(const Request& request) {
  if (request.look == "ucx") end(look_at_ucx());
  if (request.look == "gpu") end(look_at_gpus());
  require_checks(request.only);
  if (request.list) {
    if (launcher_rank() == 0) std::fputs(list_text().c_str(), stdout);
    end(0);
  }
  Doctor doctor(request);
  // Alone there is nobody else who could end it.
  if (!cluster::launched_ranks()) doctor.examine([](std::span<const std::byte>) {});
  doctor.conclude(keep([&](const Leave& leave) { doctor.examine(leave); }));
}

}  // namespace capstan::launch::doctor
