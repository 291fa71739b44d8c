// hosts.cpp -- parses host files of Open MPI and MPICH.
#include "launch/run/hosts.hpp"

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

namespace capstan::launch::run {
namespace {

constexpr int kMaxSlots = 1'000'000;

std::optional<int> slots_in(std::string_view text) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  const bool complete = error == std::errc() && end == text.data() + text.size();
  return complete && slots >= 1 && slots <= kMaxSlots ? std::optional(slots) : std::nullopt;
}

/// Rejects names that mpirun would take for an option ("-n") or for two hosts ("a,b"), and shell characters.
bool is_name(std::string_view text) {
  return !text.empty() && text.front() != '-' &&
         text.find_first_of(",;\"'\\$`|&<>()=") == std::string_view::npos;
}

std::optional<Host> host_in(const std::vector<std::string>& words) {
  Host host{words.front()};
  if (const auto colon = host.name.rfind(':'); colon != std::string::npos) {
    const auto slots = slots_in(std::string_view(host.name).substr(colon + 1));
    if (!slots || words.size() > 1) return std::nullopt;
    host.slots = *slots;
    host.name.resize(colon);
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word.starts_with("max-slots=") || word.starts_with("max_slots=")) continue;
    if (!word.starts_with("slots=")) return std::nullopt;
    const auto slots = slots_in(word.substr(6));
    if (!slots) return std::nullopt;
    host.slots = *slots;
  }
  return is_name(host.name) ? std::optional(host) : std::nullopt;
}

}  // namespace

std::vector<Host> read_hosts(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) {
    const int reason = errno;
    throw Error(reason == EACCES ? Code::permission_denied : Code::not_found,
                fmt::format("--hosts {}: {}", file.string(), std::strerror(reason)));
  }
  std::vector<Host> hosts;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream text(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    if (words.empty()) continue;
    const auto host = host_in(words);
    if (!host) {
      throw Error(Code::invalid_argument,
                  fmt::format("{}:{}: expected HOST, HOST slots=N or HOST:N, found \"{}\"", file.string(),
                              number, line));
    }
    const auto known =
        std::find_if(hosts.begin(), hosts.end(), [&](const Host& other) { return other.name == host->name; });
    if (known == hosts.end()) {
      hosts.push_back(*host);
    } else {
      known->slots += host->slots;  // mpirun adds them, too
    }
  }
  if (in.bad()) throw Error(Code::not_found, fmt::format("--hosts {}: read failed", file.string()));
  if (hosts.empty()) {
    throw Error(Code::invalid_argument,
                fmt::format("--hosts {}: no hosts, expected one per line", file.string()));
  }
  return hosts;
}

}  // namespace capstan::launch::run
