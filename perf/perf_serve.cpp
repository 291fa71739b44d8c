// perf_serve.cpp -- rate and latency of lookups from `capstan serve`, for one and more connections.
//
// Bound: the same lookups by capstan::Model in this process, in one thread. Every answer is compared with the
// rows that capstan::Model reads.
#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "capstan/model.hpp"

namespace capstan::perf {
namespace {

using Clock = std::chrono::steady_clock;

struct ServeOptions {
  std::string model;
  std::string variable;
  std::string socket;
  int port = 0;
  std::vector<int> connections{1, 2, 4};
  std::int64_t ids = 16;
  double seconds = 3;
  bool json = false;
  std::uint64_t seed = 1;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// What one connection, or the bound, did.
struct Samples {
  std::vector<double> seconds;
  std::int64_t wrong = 0;
};

class Ids {
 public:
  Ids(const Model& model, const ServeOptions& options, std::uint64_t seed)
      : random_(seed),
        rows_(0, model.shape(options.variable).at(0) - 1),
        ids_(static_cast<std::size_t>(options.ids)) {}
  const std::vector<std::int64_t>& next() {
    for (std::int64_t& id : ids_) id = rows_(random_);
    return ids_;
  }

 private:
  std::mt19937_64 random_;
  std::uniform_int_distribution<std::int64_t> rows_;
  std::vector<std::int64_t> ids_;
};

std::string request_of(const ServeOptions& options, const std::vector<std::int64_t>& ids) {
  if (!options.json) return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]};
  std::string body = fmt::format("{{\"variable\":\"{}\",\"ids\":[", options.variable);
  for (std::size_t i = 0; i < ids.size(); ++i) body += fmt::format("{}{}", i > 0 ? "," : "", ids[i]);
  return body + "]}";
}

Samples send_lookups(const Model& model, const ServeOptions& options, int connection) {
  Samples samples;
  const auto client = options.socket.empty() ? std::make_unique<httplib::Client>("127.0.0.1", options.port)
                                             : std::make_unique<httplib::Client>(options.socket);
  if (!options.socket.empty()) client->set_address_family(AF_UNIX);
  client->set_keep_alive(true);
  client->set_tcp_nodelay(true);
  const std::string path = "/v1/lookup?variable=" + options.variable;
  const httplib::Headers headers{{"Accept", "application/octet-stream"}};
  const char* const type = options.json ? "application/json" : "application/octet-stream";
  Ids ids(model, options, options.seed * 1000 + static_cast<std::uint64_t>(connection));
  const auto begin = Clock::now();
  while (seconds_since(begin) < options.seconds) {
    const auto& wanted = ids.next();
    const std::string body = request_of(options, wanted);
    const auto start = Clock::now();
    const auto answer = client->Post(path.c_str(), headers, body, type);
    samples.seconds.push_back(seconds_since(start));
    const auto expected = model.lookup<float>(options.variable, wanted);
    const bool right = answer && answer->status == 200 &&
                       answer->body.size() == expected.values.size() * sizeof(float) &&
                       std::memcmp(answer->body.data(), expected.values.data(), answer->body.size()) == 0;
    if (!right) ++samples.wrong;
    if (!answer) break;
  }
  return samples;
}

Samples look_up_here(const Model& model, const ServeOptions& options) {
  Samples samples;
  Ids ids(model, options, options.seed);
  std::vector<float> rows(model.lookup<float>(options.variable, ids.next()).values.size());
  const auto begin = Clock::now();
  while (seconds_since(begin) < options.seconds) {
    const auto& wanted = ids.next();
    const auto start = Clock::now();
    model.lookup<float>(options.variable, wanted, rows);
    samples.seconds.push_back(seconds_since(start));
  }
  return samples;
}

void print(const std::string& name, Samples samples, double elapsed, std::int64_t ids) {
  auto& all = samples.seconds;
  std::sort(all.begin(), all.end());
  const auto at = [&](double share) {
    return all.empty() ? 0 : 1e6 * all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
  };
  const auto rate = static_cast<double>(all.size()) / elapsed;
  fmt::print("{:<16} {:>12.0f} {:>12.0f} {:>10.1f} {:>10.1f} {:>6}\n", name, rate,
             rate * static_cast<double>(ids), at(0.5), at(0.99), samples.wrong);
  std::fflush(stdout);
}

int measure(const ServeOptions& options) {
  const Model model(options.model);
  std::int64_t wrong = 0;
  fmt::print("{} ids of {} a request, {} in, rows as bytes out\n", options.ids,
             to_string(model.shape(options.variable)), options.json ? "JSON" : "bytes");
  fmt::print("{:<16} {:>12} {:>12} {:>10} {:>10} {:>6}\n", "case", "requests/s", "rows/s", "p50/us", "p99/us",
             "wrong");
  const auto begin = Clock::now();
  Samples bound = look_up_here(model, options);
  print("capstan::Model", std::move(bound), seconds_since(begin), options.ids);
  for (const int connections : options.connections) {
    std::vector<Samples> samples(static_cast<std::size_t>(connections));
    const auto start = Clock::now();
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < connections; ++i) {
        threads.emplace_back(
            [&, i] { samples[static_cast<std::size_t>(i)] = send_lookups(model, options, i); });
      }
    }
    const double elapsed = seconds_since(start);
    Samples sum;
    for (const Samples& one : samples) {
      sum.seconds.insert(sum.seconds.end(), one.seconds.begin(), one.seconds.end());
      sum.wrong += one.wrong;
    }
    wrong += sum.wrong;
    print(fmt::format("{} connection{}", connections, connections == 1 ? "" : "s"), std::move(sum), elapsed,
          options.ids);
  }
  return wrong == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  ServeOptions options;
  CLI::App app("Rate and latency of lookups from a running `capstan serve` of the same model file");
  app.add_option("--model", options.model, "model file that the server serves");
  app.add_option("--variable", options.variable, "a variable of float32");
  app.add_option("--socket", options.socket, "socket of the server");
  app.add_option("--port", options.port, "port of the server, on 127.0.0.1");
  app.add_option("--connections", options.connections, "numbers of connections")->delimiter(',');
  app.add_option("--ids", options.ids, "ids of a request")->check(CLI::Range(1, 1'000'000));
  app.add_option("--seconds", options.seconds, "duration of a case")->check(CLI::Range(0.01, 600.0));
  app.add_option("--seed", options.seed, "seed of the ids");
  app.add_flag("--json", options.json, "send ids as JSON in place of bytes");
  try {
    app.parse(argc, argv);
    if (options.model.empty() || options.variable.empty() || options.socket.empty() == (options.port == 0)) {
      throw CLI::ValidationError("expected --model, --variable, and one of --socket and --port");
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return measure(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "perf_serve: {}\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) { return capstan::perf::run(argc, argv); }
