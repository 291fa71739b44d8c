// current_restore_point_test.cpp -- values that later variables, counters and states take from a checkpoint.
// Tests: src/strategy/restore_point.hpp
#include "strategy/current_restore_point.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "strategy/state_registry.hpp"
#include "support/expect_error.hpp"

namespace capstan::strategy {
namespace {

using testing::ElementsAre;

/// The contents of a checkpoint, and the calls that it received.
struct Content {
  std::set<std::string> variables;
  std::map<std::string, std::int64_t> counters;
  std::map<std::string, std::string> positions;
  std::vector<std::string> filled = {};
  std::set<std::string> lacking = {};
};

class FakeRestorePoint final : public RestorePoint {
 public:
  explicit FakeRestorePoint(Content& content) : content_(content) {}
  bool has_variable(const std::string& name) const override { return content_.variables.contains(name); }
  void require_fit(const protocol::VariableDescriptor& variable) const override {
    if (variable.dtype != DType::float32) throw Error(Code::failed_precondition, variable.name);
  }
  void fill(const protocol::VariableDescriptor& variable) override {
    content_.filled.push_back(variable.name);
  }
  void lacks_variable(const std::string& name) override { content_.lacking.insert(name); }
  std::optional<std::int64_t> counter(const std::string& name) override {
    const auto found = content_.counters.find(name);
    return found == content_.counters.end() ? std::nullopt : std::optional(found->second);
  }
  void note_counter_restored(const std::string& name) override { content_.counters.erase(name); }
  std::optional<std::string> position(const std::string& name) const override {
    const auto found = content_.positions.find(name);
    return found == content_.positions.end() ? std::nullopt : std::optional(found->second);
  }
  void note_position_restored(const std::string& name) override { content_.positions.erase(name); }
  bool complete() const noexcept override { return content_.lacking.empty(); }
  std::vector<std::string> unmatched() const override { return {}; }
  std::vector<std::string> lacking() const override { return {}; }
  std::string path() const override { return "/checkpoints/7"; }

 private:
  Content& content_;
};

class FakeState final : public CheckpointedState {
 public:
  void hold() override {}
  void release() noexcept override {}
  std::string position() const override { return position_; }
  void check(const std::string& position) const override {
    if (position == "bad") throw Error(Code::data_loss, position);
  }
  void restore(const std::string& position) override { position_ = position; }

 private:
  std::string position_ = "0";
};

class CurrentRestorePointTest : public testing::Test {
 protected:
  void restore() { point_.set(std::make_unique<FakeRestorePoint>(content_), {"/checkpoints/7", 7, {1}, {}}); }
  static protocol::VariableDescriptor variable(const std::string& name, DType dtype = DType::float32) {
    protocol::VariableDescriptor descriptor;
    descriptor.name = name;
    descriptor.dtype = dtype;
    return descriptor;
  }

  Content content_{{"w"}, {{"steps", 5}}, {{"splits", "3"}, {"damaged", "bad"}}};
  cluster::CoordinatorMemory memory_;
  PsContents contents_{memory_, /*has_spares=*/true};
  CurrentRestorePoint point_{contents_};
  StateRegistry states_{point_};
};

TEST_F(CurrentRestorePointTest, GivesNothingBeforeARestore) {
  EXPECT_EQ(point_.get(), nullptr);
  EXPECT_NO_THROW(point_.require_fit(variable("w", DType::int32)));
  EXPECT_FALSE(point_.fill(variable("w")));
  EXPECT_FALSE(point_.counter("steps"));
  point_.note_created(2);
  EXPECT_FALSE(contents_.checkpoint());
}

TEST_F(CurrentRestorePointTest, FillsVariablesThatTheCheckpointHas) {
  restore();
  ASSERT_NE(point_.get(), nullptr);
  EXPECT_TRUE(point_.fill(variable("w")));
  EXPECT_THAT(content_.filled, ElementsAre("w"));
  point_.note_created(2);
  EXPECT_THAT(contents_.checkpoint().value().variables, ElementsAre(1, 2));
  EXPECT_TRUE(contents_.checkpoint()->restored);
}

TEST_F(CurrentRestorePointTest, AMissingVariableEndsTheExtensionOfTheCheckpoint) {
  restore();
  EXPECT_FALSE(point_.fill(variable("fresh")));
  EXPECT_THAT(content_.lacking, ElementsAre("fresh"));
  point_.note_created(2);
  EXPECT_THAT(contents_.checkpoint().value().variables, ElementsAre(1));
}

TEST_F(CurrentRestorePointTest, AnIncompleteCheckpointIsNotForSpares) {
  restore();
  content_.lacking = {"v"};
  restore();
  EXPECT_FALSE(contents_.checkpoint());
}

TEST_F(CurrentRestorePointTest, RejectsAVariableThatDiffers) {
  restore();
  EXPECT_EQ(error_of(Code::failed_precondition, [&] { point_.require_fit(variable("w", DType::int32)); }),
            "w");
  EXPECT_NO_THROW(point_.require_fit(variable("other", DType::int32)));
}

TEST_F(CurrentRestorePointTest, GivesACounterItsValueOnce) {
  restore();
  EXPECT_EQ(point_.counter("steps"), 5);
  point_.note_counter_restored("steps", {0, 1, 5});
  EXPECT_EQ(point_.counter("steps"), std::nullopt);
  EXPECT_EQ(contents_.checkpoint().value().counters.size(), 1U);
}

TEST_F(CurrentRestorePointTest, ANewStateTakesItsPosition) {
  restore();
  const auto splits = std::make_shared<FakeState>();
  states_.add("splits", splits);
  EXPECT_EQ(splits->position(), "3");
  EXPECT_FALSE(content_.positions.contains("splits"));
  const auto damaged = std::make_shared<FakeState>();
  EXPECT_EQ(error_of(Code::data_loss, [&] { states_.add("damaged", damaged); }), "bad");
  EXPECT_EQ(states_.all().size(), 1U) << "a rejected state is not in checkpoints";
}

TEST(StateRegistry, FindsExistingStatesByName) {
  cluster::CoordinatorMemory memory;
  PsContents contents(memory, false);
  CurrentRestorePoint point(contents);
  StateRegistry states(point);
  auto first = std::make_shared<FakeState>();
  states.add("a", first);
  EXPECT_THAT(error_of(Code::already_exists, [&] { states.add("a", std::make_shared<FakeState>()); }),
              testing::HasSubstr("\"a\""));
  ASSERT_EQ(states.all().size(), 1U);
  EXPECT_EQ(states.all().at("a"), first);
  first.reset();
  EXPECT_TRUE(states.all().empty());
  EXPECT_NO_THROW(states.add("a", std::make_shared<FakeState>())) << "the name is free again";
}

}  // namespace
}  // namespace capstan::strategy
