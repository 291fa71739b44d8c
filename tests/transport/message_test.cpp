// message_test.cpp -- active messages arrive complete and in order, from several senders, on both kinds of
// fabric.
#include <gtest/gtest.h>

#include <map>

#include "transport/bytes.hpp"
#include "transport/networks.hpp"

namespace capstan::transport {
namespace {

using MessageTest = NetworkTest;

TEST_P(MessageTest, ArriveCompleteAndInOrder) {
  const auto a = open(0);
  const auto b = open(1);
  Peer& to_b = connect(*a, *b, "b");

  const std::vector<std::size_t> sizes{
      0, 1, 7, 64, 1000, 8191, 8192, 65536, 70001, 1 << 20, 63, std::size_t{8} << 20, 0, 100};
  struct Seen {
    std::uint16_t type;
    int from;
    std::vector<std::byte> header;
    std::vector<std::byte> payload;
  };
  std::vector<Seen> seen;
  for (std::uint16_t type = 0; type < 3; ++type) {
    b->on_message(type, [&](const Message& m) {
      seen.push_back(
          {m.type, m.from, {m.header.begin(), m.header.end()}, {m.payload.begin(), m.payload.end()}});
    });
  }
  for (unsigned i = 0; i < sizes.size(); ++i) {
    const auto header = pattern(i % 4 * 24, i);
    auto payload = pattern(sizes[i], i);
    to_b.send(static_cast<std::uint16_t>(i % 3), header, payload);
    std::fill(payload.begin(), payload.end(), std::byte{0xee});  // send() no longer needs it
  }
  const Progressing sender(*a);
  ASSERT_TRUE(progress_until(*b, deadline_in(kTimeout), [&] { return seen.size() == sizes.size(); }));
  for (unsigned i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(seen[i].type, i % 3);
    EXPECT_EQ(seen[i].from, 0);
    EXPECT_EQ(seen[i].header, pattern(i % 4 * 24, i)) << i;
    EXPECT_EQ(seen[i].payload, pattern(sizes[i], i)) << i;
  }
}

TEST_P(MessageTest, KeepsUnexpectedMessagesInOrderUntilTheyHaveAHandler) {
  const auto a = open(0);
  const auto b = open(1);
  Peer& to_b = connect(*a, *b, "b");
  b->keep_unhandled(true);
  bool last = false;
  b->on_message(9, [&](const Message&) { last = true; });
  // Of equal messages, the last one is kept.
  for (const std::uint64_t header : {1, 2, 1, 3, 1}) to_b.send(7, value_bytes(header), pattern(100, 0));
  to_b.send(8, value_bytes(std::uint64_t{4}));
  to_b.send(9, {});
  const Progressing sender(*a);
  ASSERT_TRUE(progress_until(*b, deadline_in(kTimeout), [&] { return last; }));

  std::vector<std::uint64_t> seen;
  const auto see = [&](const Message& message) {
    EXPECT_EQ(message.from, 0);
    seen.push_back(value_of<std::uint64_t>(message.header));
  };
  b->on_message(7, see);
  EXPECT_TRUE(seen.empty());  // not delivered in on_message(), whose caller may not be ready
  b->progress();
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{2, 3, 1}));
  b->on_message(8, see);
  b->progress();
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{2, 3, 1, 4}));
  b->progress();
  EXPECT_EQ(seen.size(), 4U);
}

TEST_P(MessageTest, ArriveInOrderFromEachOfSeveralSenders) {
  constexpr int kSenders = 4;
  constexpr std::uint64_t kMessages = 300;
  const auto receiver = open(kSenders);
  std::map<int, std::uint64_t> next;
  std::uint64_t total = 0;
  bool in_order = true;
  receiver->on_message(5, [&](const Message& m) {
    in_order &= value_of<std::uint64_t>(m.header) == next[m.from]++;
    in_order &= m.payload.size() == (next[m.from] - 1) * 37 % 9000;
    ++total;
  });
  const auto address = receiver->address();
  std::vector<std::shared_ptr<Fabric>> fabrics;
  for (int rank = 0; rank < kSenders; ++rank) fabrics.push_back(open(rank));
  std::atomic<bool> heard{false};
  std::vector<std::jthread> senders;
  for (auto& fabric : fabrics) {
    senders.emplace_back([&fabric, &address, &heard] {
      Peer& peer = fabric->connect(kSenders, "receiver", address);
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        peer.send(5, value_bytes(i), pattern(i * 37 % 9000, 0));
        fabric->progress();
      }
      progress_until(*fabric, deadline_in(kTimeout), [&heard] { return heard.load(); });
    });
  }
  EXPECT_TRUE(
      progress_until(*receiver, deadline_in(kTimeout), [&] { return total == kSenders * kMessages; }));
  heard = true;
  senders.clear();
  EXPECT_TRUE(in_order);
  ASSERT_EQ(next.size(), std::size_t{kSenders});
  for (const auto& [from, count] : next) EXPECT_EQ(count, kMessages) << "from " << from;
}

TEST_P(MessageTest, HandlerMayReply) {
  const auto a = open(0);
  const auto b = open(1);
  Peer& to_b = connect(*a, *b, "b");
  Peer& to_a = connect(*b, *a, "a");
  b->on_message(1,
                [&](const Message& m) { to_a.send(2, value_bytes(value_of<int>(m.header) * 2), m.payload); });
  int answer = 0;
  std::string text;
  a->on_message(2, [&](const Message& m) {
    answer = value_of<int>(m.header);
    text = text_of(m.payload);
  });
  const Progressing answering(*b);
  for (int i = 1; i <= 100; ++i) {
    to_b.send(1, value_bytes(i), bytes_of(std::to_string(i)));
    ASSERT_TRUE(progress_until(*a, deadline_in(kTimeout), [&] { return answer == 2 * i; }));
    EXPECT_EQ(text, std::to_string(i));
  }
}

TEST_P(MessageTest, RankMaySendToItself) {
  const auto a = open(3);
  Peer& to_a = connect(*a, *a, "a");
  int from = -1;
  a->on_message(1, [&](const Message& m) { from = m.from; });
  to_a.send(1, {});
  EXPECT_TRUE(progress_until(*a, deadline_in(kTimeout), [&] { return from == 3; }));
}

TEST_P(MessageTest, DropsOnlyMessagesWithoutAHandler) {
  const auto a = open(0);
  const auto b = open(1);
  Peer& to_b = connect(*a, *b, "b");
  int heard = 0;
  b->on_message(2, [&](const Message&) { ++heard; });
  to_b.send(1, {}, bytes_of("no listener"));
  to_b.send(900, {});
  to_b.send(2, {});
  const Progressing sender(*a);
  EXPECT_TRUE(progress_until(*b, deadline_in(kTimeout), [&] { return heard == 1; }));
}

TEST_P(MessageTest, ContinuesAfterAHandlerThrows) {
  const auto a = open(0);
  const auto b = open(1);
  Peer& to_b = connect(*a, *b, "b");
  int heard = 0;
  b->on_message(1, [&](const Message&) {
    if (++heard == 1) throw std::runtime_error("a test");
  });
  to_b.send(1, {});
  to_b.send(1, {});
  const Progressing sender(*a);
  EXPECT_TRUE(progress_until(*b, deadline_in(kTimeout), [&] { return heard == 2; }));
}

TEST_P(MessageTest, DeliversNothingAfterHandlersAreRemoved) {
  const auto a = open(0);
  const auto b = open(1);
  Peer& to_b = connect(*a, *b, "b");
  auto heard = std::make_unique<int>(0);
  b->on_message(1, [&](const Message&) { ++*heard; });
  to_b.send(1, {});
  {
    const Progressing sender(*a);
    ASSERT_TRUE(progress_until(*b, deadline_in(kTimeout), [&] { return *heard == 1; }));
    b->remove_handlers();
    heard.reset();  // the owner of the handlers
  }
  to_b.send(1, {});
  const Progressing sender(*a);
  progress_until(*b, deadline_in(std::chrono::milliseconds(50)), [] { return false; });
  // New handlers receive later messages.
  int again = 0;
  b->on_message(2, [&](const Message&) { ++again; });
  connect(*b, *b, "itself").send(2, {});
  EXPECT_TRUE(progress_until(*b, deadline_in(kTimeout), [&] { return again == 1; }));
}

TEST_P(MessageTest, SubscriptionsEndWithTheirOwner) {
  const auto fabric = open(0);
  Peer& itself = connect(*fabric, *fabric, "itself");
  int of_owner = 0;
  int of_another = 0;
  fabric->on_message(2, [&](const Message&) { ++of_another; });
  const auto send_both = [&](int times) {
    itself.send(1, {});
    itself.send(2, {});
    return progress_until(*fabric, deadline_in(kTimeout), [&] { return of_another == times; });
  };
  {
    Subscriptions subscriptions(*fabric);
    subscriptions.on_message(1, [&](const Message&) { ++of_owner; });
    ASSERT_TRUE(send_both(1));
    EXPECT_EQ(of_owner, 1);
  }
  ASSERT_TRUE(send_both(2));  // messages of one sender are delivered in order
  EXPECT_EQ(of_owner, 1);
}

CAPSTAN_ON_BOTH_NETWORKS(MessageTest);

TEST(ReadHeader, ReturnsTheValueOfAHeaderOfItsSize) {
  const std::uint64_t sent = 0x1122334455667788;
  const auto before = malformed_messages();
  EXPECT_EQ(read_header<std::uint64_t>({7, 1, as_bytes(sent), {}}), sent);
  EXPECT_EQ(malformed_messages(), before);
}

TEST(ReadHeader, ReturnsNothingForAnotherSizeAndCountsIt) {
  const auto bytes = pattern(72, 1);
  const auto before = malformed_messages();
  std::uint64_t sent = 0;
  for (const std::size_t size : {0, 1, 7, 9, 72}) {
    EXPECT_FALSE(read_header<std::uint64_t>({7, 1, Bytes(bytes).first(size), {}})) << size;
    EXPECT_EQ(malformed_messages(), before + ++sent);
  }
}

}  // namespace
}  // namespace capstan::transport
