// hosts_test.cpp -- host files of Open MPI and MPICH.
#include "launch/run/hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "capstan/error.hpp"
#include "support/names_all.hpp"

namespace capstan::launch::run {
namespace {

using testing::ElementsAre;

class HostFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::filesystem::path path_ = std::filesystem::path(testing::TempDir()) / "capstan_hosts_test";
};

TEST_F(HostFile, AcceptsBothSyntaxes) {
  EXPECT_THAT(read_hosts(write("# mine\nn1 slots=4 max-slots=8\n\n  n2:2  # old\nn3\n10.0.0.7:3\n")),
              ElementsAre(Host{"n1", 4}, Host{"n2", 2}, Host{"n3", 1}, Host{"10.0.0.7", 3}));
}

TEST_F(HostFile, AddsSlotsOfRepeatedHosts) {
  EXPECT_THAT(read_hosts(write("n1\nn2:2\nn1:3\n")), ElementsAre(Host{"n1", 4}, Host{"n2", 2}));
}

TEST_F(HostFile, ErrorsNameFileAndLine) {
  for (const std::string line : {"n1 slots=0", "n1:x", "n1:", "n1 4", "n1:2 slots=2", "-n:3", "a,b",
                                 "n1 slots=9999999999", "$(reboot)"}) {
    try {
      read_hosts(write("n0\n" + line + "\n"));
      ADD_FAILURE() << line << " no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_THAT(error.what(), NamesAll({path_.string() + ":2", "HOST slots=N", "HOST:N"}));
    }
  }
}

TEST_F(HostFile, RejectsMissingAndEmptyFiles) {
  EXPECT_THROW(read_hosts(write("# none\n")), Error);
  try {
    read_hosts("/nowhere/hosts");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.what(), NamesAll({"--hosts", "/nowhere/hosts"}));
  }
}

}  // namespace
}  // namespace capstan::launch::run
