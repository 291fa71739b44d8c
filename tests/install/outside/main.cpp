// main.cpp -- a program outside of Capstan's tree: a cluster in one process, a variable, functions on its
// worker, errors that cross the library boundary in both directions, and a dataset that starts in the library
// and continues in the program.
#include <algorithm>
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>

namespace cs = capstan;

float add_one(cs::Variable<float> w) {
  w.push_dense(std::vector<float>(w.rows(), -1));
  w.flush();
  return w.pull()[0];
}

void fail() { throw cs::Error(cs::Code::aborted, "intended"); }

template <class Call>
cs::Code code_of(const Call& call) {
  try {
    call();
  } catch (const cs::Error& error) {
    return error.code();
  }
  return cs::Code::ok;
}

std::size_t longest_line(const char* file) {
  std::size_t longest = 0;
  auto lengths =
      cs::text_lines(cs::data::Paths{file}).map([](const std::string& line) { return line.size(); });
  for (const std::size_t length : lengths) longest = std::max(longest, length);
  return longest;
}

int main(int argc, char** argv) {
  cs::Cluster cluster = cs::Cluster::join(argc, argv, {.ps = 2, .wait_timeout = std::chrono::seconds(30)});
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  cs::ParameterServerStrategy strategy(cluster);
  auto scope = strategy.scope();
  cs::Variable<float> w("w", cs::Shape{3}, cs::initializers::constant(4), {cs::optimizers::SGD{1}});
  cs::ClusterCoordinator coordinator(strategy);
  if (cluster.count(cs::Role::ps) != 2) return 1;
  const float five = coordinator.schedule<&add_one>(w).fetch();
  coordinator.schedule<&fail>();
  const cs::Code aborted = code_of([&] { coordinator.join(); });
  const cs::Code not_found = code_of([] { cs::Model("/nonexistent"); });
  const std::size_t longest = longest_line(__FILE__);
  const cs::BuildInfo built = cs::build_info();
  const bool described = !built.commit.empty() && !built.build_type.empty() && !built.compiler.empty() &&
                         built.cmake_options.find("BUILD_SHARED_LIBS=") != std::string::npos;
  std::printf("Capstan %s: %g, %s, %s, %zu\n", to_string(cs::version()).c_str(), static_cast<double>(five),
              std::string(to_string(aborted)).c_str(), std::string(to_string(not_found)).c_str(), longest);
  return cs::version() == cs::kHeaderVersion && described && five == 5 && aborted == cs::Code::aborted &&
                 not_found == cs::Code::not_found && longest > 80
             ? 0
             : 1;
}
