// role_file.cpp -- parses lines of WHERE ROLE.
#include "cluster/roles/role_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "capstan/error.hpp"
#include "cluster/resolvers/slurm_lists.hpp"
#include "cluster/roles/role_request.hpp"

namespace capstan::cluster {
namespace {

constexpr std::string_view kHostPrefix = "host=";

class RoleFile {
 public:
  RoleFile(const std::string& path, std::span<const std::string> hosts)
      : path_(path), hosts_(hosts), roles_(hosts.size()), line_of_(hosts.size()) {}

  void take(const std::string& line) {
    ++line_;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string where;
    std::string name;
    std::string more;
    if (!(words >> where)) return;
    if (!(words >> name) || words >> more) throw refused("expected WHERE ROLE, such as \"1-4 worker\"");
    const auto role = role_named(name);
    if (!role) {
      throw refused("\"" + name + "\" is not a role: expected coordinator, ps, worker, evaluator or spare");
    }
    if (where == "*") {
      if (rest_) throw refused("found a second line for \"*\", expected one");
      rest_ = role;
    } else if (where.starts_with(kHostPrefix)) {
      give_hosts(where.substr(kHostPrefix.size()), *role);
    } else {
      give_ranks(where, *role);
    }
  }

  std::vector<Role> finish() const {
    std::vector<Role> out;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
      const auto by_host = std::find_if(of_hosts_.begin(), of_hosts_.end(),
                                        [&](const OfHost& one) { return one.host == hosts_[rank]; });
      const auto role = roles_[rank] ? roles_[rank] : by_host != of_hosts_.end() ? by_host->role : rest_;
      if (!role) {
        throw Error(Code::invalid_argument,
                    fmt::format("{}: no line gives rank {} on {} a role; to make all other ranks workers, "
                                "add \"* worker\"",
                                path_, rank, hosts_[rank]));
      }
      out.push_back(*role);
    }
    return out;
  }

 private:
  struct OfHost {
    std::string host;
    std::optional<Role> role;
    int line = 0;
  };

  Error refused(const std::string& what) const {
    return Error(Code::invalid_argument, fmt::format("{}:{}: {}", path_, line_, what));
  }

  void give_hosts(const std::string& list, Role role) {
    for (const std::string& host : expand_hosts(fmt::format("{}:{}", path_, line_), list)) {
      if (std::find(hosts_.begin(), hosts_.end(), host) == hosts_.end()) {
        throw refused("no rank is on host " + host);
      }
      for (const OfHost& other : of_hosts_) {
        if (other.host == host) throw refused(fmt::format("host {} is also on line {}", host, other.line));
      }
      of_hosts_.push_back({host, role, line_});
    }
  }

  void give_ranks(const std::string& list, Role role) {
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      const std::string_view range = std::string_view(list).substr(begin, end - begin);
      const std::size_t dash = range.find('-');
      const std::size_t first = rank_in(range.substr(0, dash));
      const std::size_t last = dash == std::string_view::npos ? first : rank_in(range.substr(dash + 1));
      if (last < first) throw refused("\"" + std::string(range) + "\": expected the lower rank first");
      for (std::size_t rank = first; rank <= last; ++rank) give_rank(rank, role);
      begin = end + 1;
    }
  }

  void give_rank(std::size_t rank, Role role) {
    if (roles_[rank]) throw refused(fmt::format("rank {} is also on line {}", rank, line_of_[rank]));
    roles_[rank] = role;
    line_of_[rank] = line_;
  }

  std::size_t rank_in(std::string_view digits) const {
    std::size_t rank = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), rank);
    if (error != std::errc() || end != digits.end() || digits.empty()) {
      throw refused("\"" + std::string(digits) +
                    "\" is not a rank: expected ranks (0, 1-3, 0,4-6), host=NAME, or *");
    }
    if (rank >= hosts_.size()) {
      throw refused(
          fmt::format("there is no rank {}: the job has {} ranks, numbered from 0", rank, hosts_.size()));
    }
    return rank;
  }

  const std::string& path_;
  std::span<const std::string> hosts_;
  std::vector<std::optional<Role>> roles_;  // from the lines for ranks
  std::vector<int> line_of_;                // by rank: the line that gives it a role
  std::vector<OfHost> of_hosts_;
  std::optional<Role> rest_;
  int line_ = 0;
};

}  // namespace

std::vector<Role> parse_role_file(const std::string& path, const std::string& text,
                                  std::span<const std::string> hosts) {
  RoleFile file(path, hosts);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) file.take(line);
  return file.finish();
}

std::vector<Role> read_role_file(const std::string& path, std::span<const std::string> hosts) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || (file.peek() != EOF && !(text << file.rdbuf()))) {
    throw Error(Code::not_found, fmt::format("--role-file {}: {}; rank 0 reads it, on {}", path,
                                             std::strerror(errno), hosts.empty() ? "no host" : hosts[0]));
  }
  return parse_role_file(path, text.str(), hosts);
}

}  // namespace capstan::cluster
