// variable_registry_test.cpp -- names and order of variables.
#include "strategy/variable_registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/expect_error.hpp"

namespace capstan::strategy {
namespace {

std::shared_ptr<const BoundVariable> variable(std::uint32_t id, const std::string& name) {
  BoundVariable bound;
  bound.descriptor.id = id;
  bound.descriptor.name = name;
  return std::make_shared<const BoundVariable>(std::move(bound));
}

TEST(VariableRegistry, ReturnsVariablesInOrderOfCreation) {
  VariableRegistry registry(VariableRegistry::Names::unique);
  EXPECT_TRUE(registry.all().empty());
  const auto w = variable(1, "w");
  const auto b = variable(4, "b");
  registry.add(w);
  registry.add(b);
  EXPECT_THAT(registry.all(), testing::ElementsAre(w, b));
  EXPECT_THAT(registry.all(1), testing::ElementsAre(b));
  EXPECT_TRUE(registry.all(2).empty());
  EXPECT_THAT(registry.ids(), testing::ElementsAre(1, 4));
  EXPECT_EQ(registry.find("b"), b);
  EXPECT_EQ(registry.find("c"), nullptr);
}

TEST(VariableRegistry, RejectsADuplicateName) {
  VariableRegistry registry(VariableRegistry::Names::unique);
  registry.add(variable(1, "w"));
  EXPECT_NO_THROW(registry.require_new("v"));
  EXPECT_THAT(error_of(Code::already_exists, [&] { registry.require_new("w"); }),
              testing::HasSubstr("\"w\""));
}

TEST(VariableRegistry, FindsTheNewestWhereNamesMayRepeat) {
  VariableRegistry registry(VariableRegistry::Names::reusable);
  registry.add(variable(1, "w"));
  EXPECT_NO_THROW(registry.require_new("w"));
  const auto newer = variable(2, "w");
  registry.add(newer);
  EXPECT_EQ(registry.find("w"), newer);
  EXPECT_EQ(registry.all().size(), 2U);
}

}  // namespace
}  // namespace capstan::strategy
