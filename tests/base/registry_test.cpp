// registry_test.cpp -- numbers of registered functions, which are equal on all ranks of one program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capstan/detail/remote_function.hpp"
#include "support/expect_error.hpp"

namespace capstan::detail {
namespace {

std::vector<std::byte> run_first(Reader&) { return {std::byte{1}}; }
std::vector<std::byte> run_second(Reader&) { return {std::byte{2}}; }
std::shared_ptr<void> make_number(Reader&) { return std::make_shared<int>(3); }

// Registered during static initialization, as in programs.
const std::uint32_t kWhileLoaded = register_function({"while loaded", &run_first, nullptr});

TEST(Registry, NumbersFunctionsInRegistrationOrder) {
  const std::uint32_t first = register_function({"first", &run_first, nullptr});
  const std::uint32_t second = register_function({"second", &run_second, nullptr});
  EXPECT_LT(kWhileLoaded, first);
  EXPECT_EQ(second, first + 1);
}

TEST(Registry, LooksUpFunctionsByNumber) {
  const std::uint32_t first = register_function({"first", &run_first, nullptr});
  const std::uint32_t second = register_function({"second", &run_second, nullptr});
  const std::uint32_t maker = register_function({"maker", nullptr, &make_number});
  EXPECT_STREQ(registered_function(kWhileLoaded).name, "while loaded");
  EXPECT_STREQ(registered_function(first).name, "first");
  EXPECT_EQ(registered_function(first).run, &run_first);
  EXPECT_EQ(registered_function(first).make, nullptr);
  EXPECT_EQ(registered_function(second).run, &run_second);
  EXPECT_EQ(registered_function(maker).run, nullptr);
  EXPECT_EQ(registered_function(maker).make, &make_number);
}

TEST(Registry, NumbersEachRegistrationOfAFunction) {
  const RemoteFunction function{"again", &run_first, nullptr};
  EXPECT_NE(register_function(function), register_function(function));
}

TEST(Registry, RejectsUnknownNumbers) {
  const std::uint32_t next = register_function({"last", &run_first, nullptr}) + 1;
  for (const std::uint32_t number : {next, ~std::uint32_t{0}}) {
    EXPECT_THAT(error_of(Code::internal, [&] { (void)registered_function(number); }),
                testing::HasSubstr(std::to_string(number)));
  }
}

}  // namespace
}  // namespace capstan::detail
