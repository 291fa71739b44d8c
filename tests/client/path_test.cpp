// path_test.cpp -- the choice of a path, for all combinations of settings and transports.
#include "client/channel/path.hpp"

#include <gtest/gtest.h>

namespace capstan::client {
namespace {

TEST(Path, IsRmaWithAnAdapterOrBySetting) {
  EXPECT_EQ(path_without_mapping("auto", true), Path::rma);
  EXPECT_EQ(path_without_mapping("auto", false), Path::messages);
  EXPECT_EQ(path_without_mapping("rma", true), Path::rma);
  EXPECT_EQ(path_without_mapping("rma", false), Path::rma);
  EXPECT_EQ(path_without_mapping("am", true), Path::messages);
  EXPECT_EQ(path_without_mapping("am", false), Path::messages);
}

TEST(Path, MappedMemorySatisfiesAllRequirements) {
  for (const Path path : {Path::mapped, Path::in_process}) {
    for (const char* required : {"any", "rdma", "mapped"}) {
      EXPECT_TRUE(good_enough(required, path, true, false)) << required;
    }
  }
}

TEST(Path, OnlyHardwareRmaToAnotherHostIsRdma) {
  for (const Path path : {Path::rma, Path::messages}) {
    for (const bool same_host : {false, true}) {
      for (const bool hardware : {false, true}) {
        EXPECT_TRUE(good_enough("any", path, same_host, hardware));
        EXPECT_FALSE(good_enough("mapped", path, same_host, hardware));
        EXPECT_EQ(good_enough("rdma", path, same_host, hardware),
                  path == Path::rma && !same_host && hardware);
      }
    }
  }
}

}  // namespace
}  // namespace capstan::client
