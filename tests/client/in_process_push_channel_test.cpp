// in_process_push_channel_test.cpp -- pushes to a store in the same process.
#include "client/channel/in_process_push_channel.hpp"

#include <gtest/gtest.h>

namespace capstan::client {
namespace {

/// Records its arguments.
class SinkRecorder : public protocol::PushSink {
 public:
  void apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
             const std::byte* values) override {
    header_ = header;
    rows_.assign(rows.begin(), rows.end());
    const auto* const first = reinterpret_cast<const float*>(values);
    values_.assign(first, first + header.rows);
    unsettled_ = true;
  }
  bool ready(const protocol::PushHeader& /*header*/) override { return true; }
  void abandon(std::uint32_t /*variable*/, std::uint32_t /*shard*/) override {}
  bool unsettled() const noexcept override { return unsettled_; }
  void settle() override { unsettled_ = false; }

  protocol::PushHeader header_;
  std::vector<std::uint32_t> rows_;
  std::vector<float> values_;
  bool unsettled_ = false;
};

class InProcessPushChannelTest : public testing::Test {
 protected:
  PushRows rows_of(const std::vector<float>& gradient) const {
    PushRows push;
    push.variable = 3;
    push.shard = 1;
    push.row_bytes = sizeof(float);
    push.count = gradient.size();
    push.gradient = reinterpret_cast<const std::byte*>(gradient.data());
    return push;
  }

  SinkRecorder sink_;
  PushNumbering numbering_{2};
  InProcessPushChannel channel_{sink_, /*rank=*/5, /*ps=*/1};
};

TEST_F(InProcessPushChannelTest, AppliesADensePushAsOneEntry) {
  const std::vector<float> gradient{1, 2, 3};
  PushRows push = rows_of(gradient);
  push.first_row = 10;
  channel_.push(push, numbering_, false);
  EXPECT_EQ(sink_.header_.kind, protocol::PushKind::dense);
  EXPECT_EQ(sink_.header_.rank, 5U);
  EXPECT_EQ(sink_.header_.variable, 3U);
  EXPECT_EQ(sink_.header_.shard, 1U);
  EXPECT_EQ(sink_.header_.first_row, 10U);
  EXPECT_EQ(sink_.header_.first_part, 1);
  EXPECT_EQ(sink_.header_.last_part, 1);
  EXPECT_EQ(sink_.header_.closure, 0U);
  EXPECT_TRUE(sink_.rows_.empty());
  EXPECT_EQ(sink_.values_, gradient);
}

TEST_F(InProcessPushChannelTest, ComputesRowNumbersAndGathersRows) {
  const std::vector<float> gradient{1, 2, 3, 4};
  const std::vector<std::int64_t> ids{12, 10};
  const std::vector<std::uint32_t> order{3, 1};
  PushRows push = rows_of(gradient);
  push.count = 2;
  push.first_row = 10;
  push.ids = ids;
  push.order = order;
  channel_.push(push, numbering_, true);
  EXPECT_EQ(sink_.header_.kind, protocol::PushKind::sparse);
  EXPECT_EQ(sink_.rows_, (std::vector<std::uint32_t>{2, 0}));
  EXPECT_EQ(sink_.values_, (std::vector<float>{4, 2}));
}

TEST_F(InProcessPushChannelTest, NumbersTheEntriesOfAClosure) {
  const std::vector<float> gradient{1};
  numbering_.begin({.id = 7});
  numbering_.next_push();
  channel_.push(rows_of(gradient), numbering_, false);
  channel_.push(rows_of(gradient), numbering_, false);
  EXPECT_EQ(sink_.header_.closure, 7U);
  EXPECT_EQ(sink_.header_.part, 1U);
}

TEST_F(InProcessPushChannelTest, WaitsForAllGradientRowsToArrive) {
  const std::vector<float> gradient{1, 2, 3};
  std::uint64_t awaited = 0;
  const Arrival arrival = [&](std::uint64_t bytes) { awaited = bytes; };
  PushRows push = rows_of(gradient);
  push.arrival = &arrival;
  channel_.push(push, numbering_, false);
  EXPECT_EQ(awaited, 3 * sizeof(float));
}

TEST_F(InProcessPushChannelTest, IsIdleWhenTheStoreHasSettled) {
  EXPECT_TRUE(channel_.idle());
  channel_.push(rows_of({1}), numbering_, false);
  EXPECT_FALSE(channel_.idle());
  EXPECT_FALSE(channel_.applied(channel_.pushed()));
  channel_.wait(channel_.pushed());
  EXPECT_TRUE(channel_.applied(channel_.pushed()));
  EXPECT_TRUE(channel_.idle());
}

TEST_F(InProcessPushChannelTest, CompletesTheHeaderOfAnEntryWithoutRows) {
  protocol::PushHeader header;
  header.kind = protocol::PushKind::step;
  header.variable = 2;
  header.first_row = 9;
  channel_.send(header);
  EXPECT_EQ(sink_.header_.kind, protocol::PushKind::step);
  EXPECT_EQ(sink_.header_.rank, 5U);
  EXPECT_EQ(sink_.header_.bytes, sizeof header);
  EXPECT_EQ(sink_.header_.first_row, 9U);
}

}  // namespace
}  // namespace capstan::client
