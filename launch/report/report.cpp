// report.cpp -- collects the sections and writes the file.
#include "launch/report/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/command_output.hpp"
#include "capstan/error.hpp"
#include "io/output_file.hpp"
#include "launch/doctor/launchers.hpp"
#include "launch/launcher_rank.hpp"
#include "launch/report/anonymizer.hpp"
#include "launch/report/doctor_section.hpp"
#include "launch/report/document.hpp"
#include "launch/report/environment.hpp"
#include "launch/report/job_files.hpp"
#include "launch/report/job_names.hpp"
#include "launch/report/known_names.hpp"
#include "launch/report/machine.hpp"

namespace capstan::launch::report {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kDoctorLimit{10};  // waiting for one rank alone may take 3 minutes
constexpr std::chrono::minutes kPerfLimit{4};     // for each benchmark
constexpr std::size_t kMaxPlainBytes = 1 << 20;   // a larger report is compressed

fs::path own_path() { return fs::read_symlink("/proc/self/exe"); }

/// In a process of its own: the doctor ends its process.
std::optional<CommandOutput> doctor_output() {
  const std::vector<std::string> words{own_path().string(), "doctor", "--json"};
  return command_output(words, kDoctorLimit);
}

std::vector<fs::path> benchmarks() {
  std::vector<fs::path> paths;
  for (const char* name : {"perf_lookup", "perf_push"}) {
    paths.push_back(own_path().parent_path() / name);
    if (!fs::exists(paths.back())) {
      throw Error(Code::not_found, fmt::format("--perf: {} does not exist, expected a build directory with "
                                               "CAPSTAN_BUILD_PERF=ON",
                                               paths.back().string()));
    }
  }
  return paths;
}

std::string perf_output(const std::vector<fs::path>& paths) {
  std::string text;
  for (const fs::path& path : paths) {
    const std::vector<std::string> words{
        own_path().string(), "run",  "--ps",      "1", "--workers", "1",      "--",    path.string(),
        "--iters",           "4",    "--repeat",  "2", "--rows",    "100000", "--dim", "64",
        "--call-ids",        "1024", "--no-rival"};
    const auto output = command_output(words, kPerfLimit, StderrMode::captured);
    text += fmt::format("$ {}\n{}", fmt::join(words, " "),
                        output ? output->text : fmt::format("no result within {} min\n", kPerfLimit.count()));
    if (output && output->exit_code != 0) text += fmt::format("exit code {}\n", output->exit_code);
  }
  return text;
}

void add_job(Document& document, const JobFiles& files) {
  document.add("RUN_DIR", files.overview);
  for (const JobFile& file : files.files) {
    const std::string title = fmt::format("RUN_DIR/{}", file.name);
    if (file.end.error.empty()) {
      document.add(
          title, file.end.text,
          file.end.left_out == 0 ? "" : fmt::format("the first {} bytes are left out", file.end.left_out));
    } else {
      document.add(title, fmt::format("(cannot be read: {})\n", file.end.error), "unreadable");
    }
  }
}

}  // namespace

int run(const Request& request) {
  if (launcher_rank() != 0) {
    (void)doctor_output();
    return 0;
  }
  // Errors that the user can correct precede the checks, which take seconds.
  std::vector<fs::path> perf;
  if (request.perf) {
    if (const auto launched = doctor::launcher_size()) {
      throw Error(Code::invalid_argument,
                  fmt::format("--perf: found the launcher of {}, expected none: --perf starts "
                              "ranks itself",
                              launched->variable));
    }
    perf = benchmarks();
  }
  JobFiles files;
  if (!request.run_dir.empty()) files = read_job_files(request.run_dir);
  io::OutputFile plain(request.output, request.force);
  io::OutputFile compressed(request.output + ".gz", request.force);

  Anonymizer anonymizer;
  const std::string doctor = doctor_section(anonymizer, doctor_output());
  add_known_names(anonymizer, environ);
  if (!request.run_dir.empty()) add_names_of_job(anonymizer, request.run_dir, files);

  Document document(anonymizer);
  document.add("build", build_text());
  document.add("capstan doctor --json", doctor);
  document.add_anonymized("environment variables", environment_text(environ, anonymizer),
                          "only variables that affect a run");
  document.add("system files", system_files_text());
  document.add("commands", system_commands_text());
  if (request.perf) document.add("benchmarks", perf_output(perf));
  if (!request.run_dir.empty()) add_job(document, files);

  const std::string text = document.text();
  io::OutputFile& output = text.size() > kMaxPlainBytes ? compressed : plain;
  output.append(&output == &compressed ? gzip(text) : text);
  output.publish();
  std::printf("wrote %s: names, addresses and secrets are replaced; read it before you send it\n",
              output.path().c_str());
  if (std::fflush(stdout) != 0) throw Error(Code::resource_exhausted, "cannot write to standard output");
  return 0;
}

}  // namespace capstan::launch::report
