// known_names.cpp -- gethostname, the password file, /etc/hosts, /etc/resolv.conf and variables.
#include "launch/report/known_names.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "capstan/error.hpp"
#include "cluster/resolvers/slurm_lists.hpp"
#include "launch/report/patterns.hpp"

namespace capstan::launch::report {
namespace {

void add_home(Anonymizer& anonymizer, const std::string& home) {
  anonymizer.add(Kind::home_path, home);
  std::error_code error;
  const auto target = std::filesystem::canonical(home, error);  // homes are often symbolic links
  if (!error) anonymizer.add(Kind::home_path, target.string());
}

void add_user(Anonymizer& anonymizer) {
  const passwd* user = ::getpwuid(::geteuid());
  if (user == nullptr) return;
  anonymizer.add(Kind::user, user->pw_name);
  const std::string full_name = std::string(user->pw_gecos).substr(0, std::string(user->pw_gecos).find(','));
  anonymizer.add(Kind::user, full_name);
  add_home(anonymizer, user->pw_dir);
}

void add_hosts_file(Anonymizer& anonymizer) {
  std::ifstream file("/etc/hosts");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    words >> name;  // the address
    while (words >> name) {
      if (!name.starts_with("ip6-")) anonymizer.add(Kind::host, name);
    }
  }
}

void add_domains(Anonymizer& anonymizer) {
  std::ifstream file("/etc/resolv.conf");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word != "search" && word != "domain") continue;
    while (words >> word) {
      if (word.find('.') != std::string::npos) anonymizer.add(Kind::domain, word);
    }
  }
}

/// Adds the hosts in texts such as "HOST:PORT" and "[\"HOST:PORT\", …]".
void add_hosts_with_port(Anonymizer& anonymizer, std::string_view text) {
  constexpr std::string_view kBeforePort =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  for (std::size_t colon = text.find(':'); colon != text.npos; colon = text.find(':', colon + 1)) {
    if (colon + 1 == text.size() || std::isdigit(static_cast<unsigned char>(text[colon + 1])) == 0) continue;
    const std::size_t begin = text.find_last_not_of(kBeforePort, colon == 0 ? 0 : colon - 1) + 1;
    if (begin < colon) anonymizer.add(Kind::host, text.substr(begin, colon - begin));
  }
}

/// Adds all words between separators, except "(null)".
void add_words(Anonymizer& anonymizer, Kind kind, std::string text, std::string_view separators) {
  for (char& one : text) {
    if (separators.find(one) != separators.npos) one = ' ';
  }
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word != "(null)") anonymizer.add(kind, word);
  }
}

void add_host_list(Anonymizer& anonymizer, const std::string& variable, const std::string& text) {
  try {
    for (const std::string& host : cluster::expand_hosts(variable, text)) anonymizer.add(Kind::host, host);
  } catch (const Error&) {
    anonymizer.add(Kind::host, text);
  }
}

}  // namespace

void add_known_names(Anonymizer& anonymizer, const char* const* environment) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) anonymizer.add(Kind::host, host.data());
  add_user(anonymizer);
  add_hosts_file(anonymizer);
  add_domains(anonymizer);
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const auto equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    const std::string value(entry.substr(std::min(equals + 1, entry.size())));
    const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (is_one_of({"USER", "LOGNAME", "SUDO_USER", "SLURM_JOB_USER"})) anonymizer.add(Kind::user, value);
    if (name.ends_with("_ACCOUNT")) anonymizer.add(Kind::account, value);
    if (name == "HOME") add_home(anonymizer, value);
    if (is_one_of({"HOSTNAME", "SLURMD_NODENAME", "SLURM_SUBMIT_HOST"})) anonymizer.add(Kind::host, value);
    if (name.find("NODELIST") != name.npos) add_host_list(anonymizer, std::string(name), value);
    if (name == "SLURM_TOPOLOGY_ADDR")
      add_words(anonymizer, Kind::host, value, ".");  // switches, then a host
    if (name == "SLURM_NODE_ALIASES") add_words(anonymizer, Kind::host, value, ",:");  // ALIAS:ADDRESS:HOST,…
    if (name == "SLURM_CLUSTER_NAME") anonymizer.add(Kind::domain, value);
    if (name == "SLURM_WORKING_CLUSTER") {  // CLUSTER:HOST:PORT:…
      anonymizer.add(Kind::domain, value.substr(0, value.find(':')));
      add_hosts_with_port(anonymizer, value);
    }
    if (is_one_of({"TF_CONFIG", "NCCL_COMM_ID", "PMI_PORT"})) add_hosts_with_port(anonymizer, value);
    if (is_secret_name(name)) anonymizer.add(Kind::secret, value);
  }
}

}  // namespace capstan::launch::report
