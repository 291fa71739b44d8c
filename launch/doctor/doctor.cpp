// doctor.cpp -- runs the checks of each rank, then the collective checks, then prints the report.
#include "launch/doctor/doctor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "cluster/runtime.hpp"
#include "launch/doctor/checkpoint_directory.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/doctor/gpu.hpp"
#include "launch/doctor/host_names.hpp"
#include "launch/doctor/job_checks.hpp"
#include "launch/doctor/launchers.hpp"
#include "launch/doctor/pair_judge.hpp"
#include "launch/doctor/pair_tester.hpp"
#include "launch/doctor/rank_group.hpp"
#include "launch/doctor/report.hpp"
#include "launch/doctor/supervised_child.hpp"
#include "launch/doctor/ucx_probe.hpp"
#include "launch/exit_codes.hpp"
#include "launch/launcher_rank.hpp"

namespace capstan::launch::doctor {
namespace {

/// Returns false in a job of several ranks: Open MPI gives each rank its own pseudo-terminal as standard
/// output, so isatty() does not tell whether the user's output is a terminal.
bool shows_color(int output) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(output) == 1 && cluster::launched_ranks().value_or(1) == 1 &&
         (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

[[noreturn]] void end(int code) {
  std::fflush(nullptr);
  _exit(code);
}

/// Redirects standard output to standard error, since MPI and UCX may print to it, and returns a descriptor
/// of the original standard output for the report.
int redirect_stdout_to_stderr() {
  const int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) throw call_failed("dup2", std::strerror(errno));
  return output;
}

class Doctor {
 public:
  explicit Doctor(const Request& request)
      : request_(request), output_(redirect_stdout_to_stderr()), launched_(launcher_size()) {
    report_.hosts = {cluster::host_name()};
  }

  /// Calls `send_report` with the findings of this rank, and again with no bytes once the report is printed.
  [[noreturn]] void examine(const SendReport& send_report) {
    // Forks, so it precedes threads, MPI and UCX.
    std::unique_ptr<RankGroup> pair_group;
    if (is_alone() && selects_pairs())
      pair_group = fork_rank_group([this](RankGroup& group) { test_pairs(group); });
    own_.findings = run_local_checks(request_);
    own_.host = cluster::host_name();
    send_report(to_bytes(own_));
    try {
      if (cluster::launched_ranks())
        group_ = mpi_rank_group([this](const std::string& why) { give_up(why); });
      if (ranks() > 1) {
        collect_findings();
      } else {
        report_.add({own_});
      }
      judge_together();
      if (selects_pairs()) judge_pairs(pair_group.get());
    } catch (const Error& error) {
      give_up(error.what());
    }
    const bool prints =
        rank() == 0 && launcher_rank() == 0;  // one process, even if each of N is its own MPI world
    const int code = prints ? print() : 0;
    send_report({});
    pair_group.reset();
    group_.reset();
    end(code);
  }

  /// Reports on behalf of a child that ran examine() and may have died in it.
  [[noreturn]] void conclude(const ChildResult& result) {
    const bool finished = result.reports.size() == 2;
    if (finished || result.exit_code == static_cast<int>(Exit::environment)) end(result.exit_code);
    if (!result.reports.empty()) own_ = from_bytes<RankFindings>(result.reports.front());
    if (result.terminated)
      give_up("the launcher terminated all ranks early: one of them died or never started");
    const std::string how = result.exit_code > 128 ? fmt::format("signal {}", result.exit_code - 128)
                                                   : fmt::format("exit code {}", result.exit_code);
    if (launcher_rank() != 0)
      std::fprintf(stderr, "capstan: rank %d: MPI or UCX ended the process, %s\n", launcher_rank(),
                   how.c_str());
    give_up(fmt::format("MPI or UCX ended the process ({}); see standard error", how));
  }

 private:
  int rank() const { return group_ ? group_->rank() : 0; }
  int ranks() const { return group_ ? group_->size() : 1; }
  bool selects(std::string_view check) const { return is_selected(check, request_.only); }

  bool selects_pairs() const { return selects("transports") || selects("rma") || selects("speed"); }
  /// Returns false also if the launcher started several processes that are each their own MPI world.
  bool is_alone() const {
    return cluster::launched_ranks().value_or(1) == 1 && (!launched_ || launched_->ranks == 1);
  }

  struct Pairs {
    std::vector<Link> links;
    std::vector<Speed> speeds;
    std::vector<RmaProbe> rma_probes;
  };

  /// Collective.
  Pairs test_pairs(RankGroup& ranks) const {
    PairTester tester(ranks);
    Pairs pairs;
    if (selects("transports")) pairs.links = tester.links();
    if (selects("speed")) pairs.speeds = tester.speeds();
    if (selects("rma")) pairs.rma_probes = tester.rma_probes();
    ranks.barrier("all pairs to be done");
    return pairs;
  }

  void judge_pairs(RankGroup* pair_group) {
    Pairs pairs;
    if (pair_group != nullptr) {
      try {
        pairs = test_pairs(*pair_group);
      } catch (const Error& error) {
        Finding finding = fail(
            error.what(),
            "run UCX_LOG_LEVEL=info capstan settings --transports: the second process died or hung in UCX");
        finding.check = "transports";
        report_.add(finding);
        return;
      }
    } else if (ranks() > 1) {
      pairs = test_pairs(*group_);
    }
    const auto add_all = [&](const char* check, std::vector<Finding> findings) {
      for (Finding& finding : findings) add(check, [&] { return std::move(finding); });
    };
    add_all("transports", judge_links(pairs.links, with_adapter_));
    add_all("rma", judge_rma_probes(pairs.rma_probes));
    add_all("speed", judge_speeds(pairs.speeds));
    report_.measurements = measurements(pairs.speeds);
  }

  void collect_findings() {
    own_.rank = rank();
    std::vector<RankFindings> all;
    for (const Blob& blob : group_->gather_to_root(to_bytes(own_), "the checks of all ranks"))
      all.push_back(from_bytes<RankFindings>(blob));
    report_.add(all);
  }

  void judge_together() {
    add("ranks", [&] { return judge_ranks(launched_, group_ ? std::optional(ranks()) : std::nullopt); });
    const Listener listener;
    RankFacts mine = own_facts();
    mine.port = listener.port();
    std::vector<RankFacts> facts{mine};
    if (ranks() > 1) {
      facts.clear();
      for (const Blob& blob : group_->all_gather(to_bytes(mine), "the properties of all ranks"))
        facts.push_back(from_bytes<RankFacts>(blob));
    }
    with_adapter_ = hosts_with_adapter(facts);
    report_.ranks = ranks();
    report_.hosts.clear();
    for (const HostRanks& host : group_by_host(facts)) report_.hosts.push_back(host.host);
    add("binary", [&] { return judge_binary(facts); });
    add("ipc", [&] { return judge_ipc(facts); });
    if (selects("binding")) report_.add(bindings(facts));
    const bool several = report_.hosts.size() > 1;
    add("clock",
        [&] { return judge_clocks(several ? measure_clocks(*group_, facts) : std::vector<ClockOffset>()); });
    add("ports", [&] { return several ? check_ports(*group_, facts) : judge_connections({}); });
    const std::string directory = checkpoint_directory(request_);
    add("shared-dir", [&] {
      return several && !directory.empty()
                 ? check_shared_directory(*group_, facts, directory)
                 : judge_shared_directory(directory, static_cast<int>(report_.hosts.size()), {}, {});
    });
  }

  /// Findings per rank rather than per host, so that equal hosts share a line.
  static std::vector<RankFindings> bindings(const std::vector<RankFacts>& facts) {
    const std::vector<HostRanks> hosts = group_by_host(facts);
    std::vector<Finding> findings = judge_binding(facts);
    std::vector<RankFindings> of_ranks;
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      findings[host].check = "binding";
      for (const int rank : hosts[host].ranks) of_ranks.push_back({rank, hosts[host].host, {findings[host]}});
    }
    return of_ranks;
  }

  /// Must run on every rank, since `judge` may be collective.
  template <class Judge>
  void add(const char* check, Judge&& judge) {
    if (!selects(check)) return;
    Finding finding = judge();
    finding.check = check;
    report_.add(finding);
  }

  /// Ends the process because the ranks cannot communicate. Rank 0 prints the findings so far.
  [[noreturn]] void give_up(const std::string& why) {
    // Never unlocked: either the waiting thread or its watchdog may report, but not both.
    static std::mutex once;
    once.lock();
    if (launcher_rank() == 0) {
      if (report_.lines.empty()) report_.add({own_});
      if (launched_) report_.ranks = launched_->ranks;
      Finding finding = fail(
          why,
          "use the launcher of this MPI, or srun --mpi=pmix; check for unreachable hosts, firewalls and the "
          "network interface of MPI (btl_tcp_if_include, UCX_NET_DEVICES)");
      finding.check = "ranks";
      report_.add(finding);
      (void)print();
    }
    end(static_cast<int>(Exit::environment));
  }

  int print() const {
    const std::string text =
        request_.json ? report_.json().dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                      : report_.text(shows_color(output_));
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t put = ::write(output_, rest.data(), rest.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) {
        std::fprintf(stderr, "capstan: cannot write to standard output: %s\n", std::strerror(errno));
        break;
      }
      rest.remove_prefix(static_cast<std::size_t>(put));
    }
    return report_.exit_code();
  }

  Request request_;
  int output_;
  std::optional<LauncherSize> launched_;
  std::unique_ptr<RankGroup> group_;
  RankFindings own_;
  Report report_;
  std::set<std::string> with_adapter_;
};

}  // namespace

void run(const Request& request) {
  if (request.probe == "ucx") end(run_ucx_probe());
  if (request.probe == "gpu") end(run_gpu_probe());
  require_checks(request.only);
  if (request.list) {
    if (launcher_rank() == 0) std::fputs(list_text().c_str(), stdout);
    end(0);
  }
  Doctor doctor(request);
  // Without a launcher, no other process can end this one.
  if (!cluster::launched_ranks()) doctor.examine([](std::span<const std::byte>) {});
  doctor.conclude(run_in_child([&](const SendReport& send_report) { doctor.examine(send_report); }));
}

}  // namespace capstan::launch::doctor
