// names_test.cpp -- named objects reject names that HDF5 cannot store, at creation.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "capstan/capstan.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

const std::vector<std::string> kBadNames{"",
                                         std::string("nul\0", 4),
                                         "a\nb",
                                         "tab\t",
                                         "escape\x1b[31m",
                                         "delete\x7f",
                                         "latin-1 \xe9",
                                         "cut \xe2\x82",
                                         "overlong \xc0\xaf",
                                         ".",
                                         "..",
                                         "../w",
                                         "a/../b",
                                         "a/.",
                                         "/w",
                                         "w/",
                                         "a//b",
                                         std::string(513, 'x')};

template <class Create>
void expect_bad_names_rejected(const std::string& kind, const Create& create) {
  for (const std::string& name : kBadNames) {
    const std::string text = error_of(Code::invalid_argument, [&] { create(name); });
    EXPECT_NE(text.find(kind), std::string::npos) << text;
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; })) << text;
  }
}

class Names : public testing::Test {
 protected:
  RankThreads ranks_{{.ranks = 3, .flags = {{"ps", "1"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster()};
  io::TemporaryDirectory directory_;
};

TEST_F(Names, RejectNamesThatHdf5CannotStore) {
  ClusterCoordinator coordinator(strategy_);
  const auto scope = strategy_.scope();
  expect_bad_names_rejected("variable", [](const auto& name) { Variable<float> v(name, Shape{2}); });
  expect_bad_names_rejected("variable",
                            [](const auto& name) { Variable<float> v(name, Array<float>({1}, {1})); });
  expect_bad_names_rejected("counter", [](const auto& name) { Counter c(name); });
  expect_bad_names_rejected("update group", [](const auto& name) { UpdateGroup g(name, Synchronous{}); });
  expect_bad_names_rejected("per-worker variable",
                            [](const auto& name) { PerWorkerVariable<float> v(name, Shape{2}); });
  expect_bad_names_rejected("table", [](const auto& name) {
    StaticHashTable<std::string, std::int64_t> table(name, {"a"}, {1}, 0);
  });
  expect_bad_names_rejected("dataset of splits", [&](const std::string& name) {
    // An empty name requests a generated one.
    (void)coordinator.create_split_dataset(10, {.name = name.empty() ? "/" : name});
  });

  const Variable<float> v("v", Shape{2});
  const Counter counter("steps");
  CheckpointManager manager(strategy_, {.directory = directory_.path()});
  EXPECT_NO_THROW(manager.save(1));
}

TEST_F(Names, RejectVariablesInsideTheDataOfAnother) {
  {
    const auto scope = strategy_.scope();
    const auto create = [](const char* name) { return [name] { Variable<float> v(name, Shape{2}); }; };
    const auto expect_rejected = [&](const std::string& outer, const std::string& inner, const char* name) {
      const std::string text = error_of(Code::invalid_argument, create(name));
      EXPECT_NE(text.find('"' + outer + '"'), std::string::npos) << text;
      EXPECT_NE(text.find('"' + inner + '"'), std::string::npos) << text;
    };
    create("a")();
    for (const char* inside : {"a/value", "a/value/b", "a/slots", "a/slots/m", "a/changed_rows"}) {
      expect_rejected("a", inside, inside);
    }
    create("b/c/value/d")();
    expect_rejected("b/c", "b/c/value/d", "b/c");
    for (const char* beside : {"a/b", "a/values", "a/value.b", "b", "value", "slots/m"}) create(beside)();
    expect_rejected("a", "a/value", "a/value");  // with "a/value.b" next to it
  }
  CheckpointManager manager(strategy_, {.directory = directory_.path()});
  const auto saved = manager.save(1, "null", {.incremental = true});
  EXPECT_EQ(io::CheckpointReader(saved).variables().size(), 8U);
  EXPECT_NO_THROW(manager.save(2, "null", {.incremental = true}));
}

}  // namespace
}  // namespace capstan
