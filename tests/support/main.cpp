// main.cpp -- main() of the program that contains all tests of a directory.
//
// --file NAME.cpp runs the tests of that file only; it may be repeated. --gtest_filter takes precedence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

namespace {

std::string_view file_name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Returns a --gtest_filter that selects all tests of the files; "" if one of the files has no test.
std::string tests_of(const std::set<std::string_view>& files) {
  std::string filter;
  std::set<std::string_view> without_tests = files;  // so far
  const auto& tests = *testing::UnitTest::GetInstance();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *tests.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const testing::TestInfo& test = *suite.GetTestInfo(k);
      const auto file = file_name_of(test.file());
      if (!files.contains(file)) continue;
      without_tests.erase(file);
      filter.append(suite.name()).append(".").append(test.name()).append(":");
    }
  }
  for (const auto file : without_tests) {
    std::fprintf(stderr, "--file %.*s: no test in this file\n", static_cast<int>(file.size()), file.data());
  }
  return without_tests.empty() ? filter : std::string();
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  std::set<std::string_view> files;
  for (int i = 1; i < argc; i += 2) {
    if (std::string_view(argv[i]) != "--file" || i + 1 == argc) {
      std::fprintf(stderr, "usage: %s [--file NAME.cpp]... [--gtest_...]\n", argv[0]);
      return EXIT_FAILURE;
    }
    files.insert(argv[i + 1]);
  }
  if (!files.empty() && GTEST_FLAG_GET(filter) == "*") {
    const std::string filter = tests_of(files);
    if (filter.empty()) return EXIT_FAILURE;
    GTEST_FLAG_SET(filter, filter);
  }
  const int status = RUN_ALL_TESTS();
  if (!files.empty() && testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fprintf(stderr,
                 "no test was selected; if --gtest_filter or GTEST_FILTER is set, --file is ignored\n");
    return EXIT_FAILURE;
  }
  return status;
}
