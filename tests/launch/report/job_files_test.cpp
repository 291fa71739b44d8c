// job_files_test.cpp -- ends of files, the newest logs, and directories that have none.
#include "launch/report/job_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "capstan/error.hpp"
#include "launch/report/job_names.hpp"

namespace capstan::launch::report {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ReportJobFiles : public ::testing::Test {
 protected:
  ReportJobFiles() {
    fs::remove_all(directory_);
    fs::create_directories(directory_ / "log");
  }
  ~ReportJobFiles() override { fs::remove_all(directory_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
  }

  const fs::path directory_ =
      fs::path(::testing::TempDir()) / ("report-job-files-" + std::to_string(::getpid()));
};

TEST_F(ReportJobFiles, StartAtALine) {
  write("log/rank-00000.log", "first" + std::string(70000, 'x') + "\nlast\n");
  const JobFiles files = read_job_files(directory_);
  ASSERT_EQ(files.files.size(), 1U);
  EXPECT_EQ(files.files[0].name, "log/rank-00000.log");
  EXPECT_EQ(files.files[0].end.text, "last\n");
  EXPECT_EQ(files.files[0].end.left_out, 70006U);
  EXPECT_EQ(files.overview, "logs: 1 found, 0 left out, 0 unreadable\n");
}

TEST_F(ReportJobFiles, ALongLineStartsAtAWord) {
  std::string line = R"({"ps": [{"host": "gamma"}, {"host": "delta"}], "rows": [)";
  while (line.size() < 100000) line += "123456, ";
  write("metrics.jsonl", "{}\n" + line + "0]}\n");
  const JobFiles files = read_job_files(directory_);
  ASSERT_EQ(files.files.size(), 1U);
  const FileEnd& end = files.files[0].end;
  EXPECT_EQ(end.text.substr(0, 7), " 123456");
  EXPECT_GT(end.text.size(), 65000U);
  EXPECT_EQ(end.text.size() + end.left_out, fs::file_size(directory_ / "metrics.jsonl"));
  Anonymizer anonymizer;
  add_names_of_job(anonymizer, directory_, files);
  EXPECT_EQ(anonymizer.anonymize("gamma delta"), "host-1 host-2") << "they are before the end that is kept";
}

TEST_F(ReportJobFiles, AreThe256LogsThatWereWrittenLast) {
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 300; ++i) {
    const std::string name = "log/rank-00" + std::to_string(100 + i) + ".log";
    write(name, "[worker 0@host" + std::string(1, static_cast<char>('a' + i / 26)) +
                    static_cast<char>('a' + i % 26) + "] x\n");
    fs::last_write_time(directory_ / name, now - std::chrono::hours(i % 50 < 40 ? 1 : 2));
  }
  const JobFiles files = read_job_files(directory_);
  EXPECT_EQ(files.files.size(), 256U);
  EXPECT_EQ(files.files.front().name, "log/rank-00100.log");
  EXPECT_EQ(files.files.back().name, "log/rank-00389.log");
  EXPECT_EQ(files.left_out_logs.size(), 44U);
  EXPECT_EQ(files.overview, "logs: 300 found, 44 left out, 0 unreadable\n");
  Anonymizer anonymizer;
  add_names_of_job(anonymizer, directory_, files);
  EXPECT_EQ(anonymizer.anonymize("hostln"), "host-1") << "the host in a log that is left out";
}

TEST_F(ReportJobFiles, CountsUnreadableLogs) {
  fs::create_symlink("absent", directory_ / "log/rank-00000.log");
  fs::create_directory(directory_ / "summary.txt");
  const JobFiles files = read_job_files(directory_);
  EXPECT_EQ(files.overview, "logs: 1 found, 0 left out, 1 unreadable\n");
  ASSERT_EQ(files.files.size(), 1U);
  EXPECT_EQ(files.files[0].end.error, "Is a directory");
}

TEST_F(ReportJobFiles, NamesALogDirectoryThatCannotBeRead) {
  fs::remove(directory_ / "log");
  write("log", "");
  write("cluster.json", "{}");
  EXPECT_EQ(read_job_files(directory_).overview,
            "logs: 0 found, 0 left out, 0 unreadable\nthe list of logs is incomplete: Not a directory\n");
}

TEST_F(ReportJobFiles, NamesADirectoryThatIsNoRunDirectory) {
  EXPECT_EQ(
      read_job_files(directory_).overview,
      "logs: 0 found, 0 left out, 0 unreadable\nnot the --run-dir of a job: no summary, metrics or logs\n");
}

TEST_F(ReportJobFiles, RejectsOtherPaths) {
  const auto code_of = [](const fs::path& path) {
    try {
      (void)read_job_files(path);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(path.string()));
      return error.code();
    }
    return Code::ok;
  };
  write("file", "");
  fs::create_symlink("loop", directory_ / "loop");
  EXPECT_EQ(code_of(directory_ / "absent"), Code::not_found);
  EXPECT_EQ(code_of(directory_ / "file"), Code::invalid_argument);
  EXPECT_EQ(code_of(directory_ / "loop"), Code::permission_denied);
}

}  // namespace
}  // namespace capstan::launch::report
