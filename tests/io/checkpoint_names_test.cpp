// checkpoint_names_test.cpp -- valid names, and names that would escape or collide.
#include <gmock/gmock.h>

#include "base/name.hpp"
#include "checkpoint_sample.hpp"
#include "io/hdf5/layout.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

using ::testing::HasSubstr;

TEST(Names, ValidNamesRoundTrip) {
  const TemporaryDirectory scratch;
  const std::vector<std::string> names{"w",
                                       "entities/embedding",
                                       "entities/embedding2",
                                       "a/b/c/d/e",
                                       "value",
                                       "value/kernel",
                                       "slots",
                                       "slots/m",
                                       "with space",
                                       "caf\xc3\xa9",
                                       "\xe2\x88\x82w",
                                       "100%",
                                       "%b",
                                       "%%b",
                                       "%d/%s",
                                       "...",
                                       "..a",
                                       "a.b",
                                       "-",
                                       "\"quoted\"",
                                       "back\\slash",
                                       "variables",
                                       std::string(512, 'x')};
  std::vector<SampleArray> arrays;
  for (std::size_t i = 0; i < names.size(); ++i) {
    arrays.push_back(make_array<float>(names[i], "value", {5, 2}, static_cast<int>(2 * i)));
    arrays.push_back(make_array<float>(names[i], "m%b", {5, 2}, static_cast<int>(2 * i + 1)));
  }
  CheckpointDirectory directory(scratch.path());
  const CheckpointReader reader(save(directory, 1, arrays, 2));
  reader.verify();
  EXPECT_EQ(reader.variables().size(), names.size());
  expect_holds(reader, arrays);
}

TEST(Names, RejectsNamesThatEscapeTheirGroup) {
  for (const std::string name : {"",     "/",     "/w",       "w/",           "a//b",
                                 "..",   "../w",  "a/../b",   "a/..",         ".",
                                 "./w",  "a/./b", "a\nb",     "tab\t",        "\x7f",
                                 "\xff", "\xc3",  "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    error_of(Code::invalid_argument, [&] { check_name("variable", name); });
    const TemporaryDirectory scratch;
    error_of(Code::invalid_argument, [&] {
      write_part(scratch.path() / part_file_name(0, 1),
                 part_arrays({make_array<float>(name, "value", {2}, 1)}, 0, 1));
    });
    EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << name;
  }
  error_of(Code::invalid_argument, [] { check_name("variable", std::string("a\0b", 3)); });
  error_of(Code::invalid_argument, [] { check_name("variable", std::string(513, 'x')); });
}

TEST(Names, SlotsHaveOneComponent) {
  for (const std::string component : {"", "..", ".", "a/b", "/m", "m/", "m\n"}) {
    error_of(Code::invalid_argument, [&] { check_component(component); });
  }
  check_component("value");
  check_component("accumulator");
}

TEST(Names, RejectsNamesWhosePathsCollide) {
  const auto refused = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { check_no_collisions(names); }),
                HasSubstr("rename one"));
  };
  refused({"a", "a/value"});
  refused({"a", "a/slots"});
  refused({"a", "a/slots/m"});
  refused({"a/b", "a/b/value/c"});
  check_no_collisions(
      std::vector<std::string>{"a", "a/b", "a/values", "slots", "slots/m", "value", "value/w"});

  // In different parts: only the coordinator can detect the collision.
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  const auto parts = directory.begin(1);
  const std::vector reports{
      write_part(parts / part_file_name(0, 2), part_arrays({make_array<float>("a", "value", {2}, 1)}, 0, 1)),
      write_part(parts / part_file_name(1, 2),
                 part_arrays({make_array<float>("a/value", "value", {2}, 2)}, 0, 1))};
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { directory.publish(1, reports); }),
              HasSubstr("rename one"));
}

TEST(Names, PartsAndCheckpointsHaveOneSpelling) {
  EXPECT_EQ(part_file_name(0, 2), "part-00000-of-00002.h5");
  EXPECT_EQ(part_of_name("part-00001-of-00002.h5")->index, 1);
  EXPECT_EQ(part_of_name("part-00001-of-00002.h5")->count, 2);
  EXPECT_EQ(part_file_name(0, 2, 0x12ab), "part-00000-of-00002-00000000000012ab.h5");
  EXPECT_EQ(part_of_name("part-00001-of-00002-00000000000012ab.h5")->index, 1);
  EXPECT_EQ(part_of_name("part-00001-of-00002-00000000000012ab.h5")->count, 2);
  for (const char* name :
       {"part-1-of-2.h5", "part-00002-of-00002.h5", "part-00001-of-00002", "part-of-.h5", "part--of-00002.h5",
        "part-000001-of-00002.h5", "part-0000x-of-00002.h5", "part-00001-of-00002-.h5",
        "part-00001-of-00002-12ab.h5", "part-00001-of-00002-00000000000012AB.h5",
        "part-00001-of-00002-00000000000012ab-00000000000012ab.h5", "xpart-00001-of-00002.h5",
        "part-00001-of-.h5", ""}) {
    EXPECT_FALSE(part_of_name(name)) << name;
  }
  EXPECT_EQ(checkpoint_name(12), "checkpoint-00000012");
  EXPECT_EQ(step_of_name(checkpoint_name(123'456'789'012)), 123'456'789'012);
}

}  // namespace
}  // namespace capstan::io
