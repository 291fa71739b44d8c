// read_modes_test.cpp -- consistent reads with concurrent writers, reads of several variables, reads in
// flight, and many pushers of one row.
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "client/client_fixture.hpp"
#include "support/poll.hpp"

namespace capstan::client {
namespace {

using Ids = std::vector<std::int64_t>;

/// State that the test shares with the workers, which are threads of this process.
struct Shared {
  std::promise<protocol::VariableDescriptor> created;
  std::shared_future<protocol::VariableDescriptor> variable{created.get_future()};
  std::atomic<bool> stop{false};
  std::atomic<int> pushes{0};
  std::atomic<int> ended{0};  // number of workers
};

void wait_for(const std::atomic<int>& count, int wanted) {
  ASSERT_TRUE(poll_until([&] { return count >= wanted; })) << count << " of " << wanted;
}

class ReadModesTest : public ClientFixture {
 protected:
  /// Each worker runs `work` with its own client, then serves until the job ends.
  template <class Work>
  RankThreadsOptions with_workers(int workers, const std::string& ring, Work work) {
    RankThreadsOptions out{.ranks = 2 + workers, .flags = {{"ps", "1"}, {"push-ring-bytes", ring}}};
    const auto serve = out.worker;
    out.worker = [work, serve](const std::shared_ptr<cluster::Runtime>& runtime) {
      {
        Client client(runtime);
        work(client);
      }
      return serve(runtime);
    };
    return out;
  }
};

TEST_P(ReadModesTest, ConsistentReadNeverSeesPartOfAPush) {
  // The variable exceeds the ring, so a push has many entries.
  constexpr std::uint64_t kElements = 40'000;
  const auto shared = std::make_shared<Shared>();
  start(with_workers(2, "64KiB",
                     [shared](Client& client) {
                       const auto v = shared->variable.get();
                       const std::vector<float> ones(kElements, 1);
                       while (!shared->stop) {
                         client.push_dense(v, ones.data());
                         ++shared->pushes;
                       }
                       client.flush();
                       ++shared->ended;
                     }),
        1);
  shared->created.set_value(create("w", DType::float32, {kElements}));
  wait_for(shared->pushes, 2);
  const auto v = shared->variable.get();
  std::vector<float> out(kElements);
  Ids some(1000);
  for (std::size_t i = 0; i < some.size(); ++i) some[i] = static_cast<std::int64_t>((i * 39'989) % kElements);
  float last = 0;
  for (int read = 0; read < 60; ++read) {
    std::span<float> seen(out);
    if (read % 2 == 0) {
      client().pull(v, 0, kElements, out.data(), ReadMode::consistent);
    } else {
      client().lookup(v, some, out.data(), ReadMode::consistent);
      seen = seen.first(some.size());
    }
    for (const float value : seen) ASSERT_EQ(value, seen[0]) << "read " << read;
    EXPECT_GE(seen[0], last);
    last = seen[0];
  }
  shared->stop = true;
  wait_for(shared->ended, 2);
}

TEST_P(ReadModesTest, ConcurrentPushesToOneRowAllCount) {
  constexpr int kWorkers = 4;
  constexpr int kPushes = 300;
  const auto shared = std::make_shared<Shared>();
  start(with_workers(kWorkers, "64KiB",
                     [shared](Client& client) {
                       const auto v = shared->variable.get();
                       const Ids hot{7, 7, 3};
                       const std::vector<float> gradient(hot.size() * 16, 1);
                       for (int push = 0; push < kPushes; ++push) client.push(v, hot, gradient.data());
                       client.flush();
                       ++shared->ended;
                     }),
        1);
  shared->created.set_value(create("w", DType::float32, {10, 16}));
  wait_for(shared->ended, kWorkers);
  const auto v = shared->variable.get();
  EXPECT_EQ(lookup<float>(v, {7}), std::vector<float>(16, 2.0F * kWorkers * kPushes));
  EXPECT_EQ(lookup<float>(v, {3}), std::vector<float>(16, 1.0F * kWorkers * kPushes));
  EXPECT_EQ(lookup<float>(v, {8}), std::vector<float>(16, 0));
}

TEST_P(ReadModesTest, AccessesSeveralVariablesInOneCall) {
  start({.ranks = 4, .flags = {{"ps", "2"}}});
  const auto v = create("v", DType::float32, {100, 3});
  const auto w = create("w", DType::float64, {50});
  const Ids v_ids{99, 0, 50};
  const Ids w_ids{49, 1};
  const std::vector<float> v_gradient(9, 2);
  const std::vector<double> w_gradient{5, 6};
  const std::vector<Client::Push> pushes{{&v, v_ids, v_gradient.data()}, {&w, w_ids, w_gradient.data()}};
  client().push(pushes);
  client().flush();
  std::vector<float> v_out(9);
  std::vector<double> w_out(2);
  const std::vector<Client::Lookup> lookups{{&v, v_ids, v_out.data()}, {&w, w_ids, w_out.data()}};
  const auto reading = client().start(lookups);
  client().finish(reading);
  EXPECT_EQ(v_out, v_gradient);
  EXPECT_EQ(w_out, w_gradient);

  const Ids wrong{50};
  const std::vector<Client::Push> bad{{&v, v_ids, v_gradient.data()}, {&w, wrong, w_gradient.data()}};
  expect_error(Code::out_of_range, "id 50 at position 0 is not in variable \"w\", which has rows 0 to 49",
               [&] { client().push(bad); });
  client().flush();
  EXPECT_EQ(lookup<float>(v, v_ids), v_gradient) << "a rejected call must send nothing";
}

TEST_P(ReadModesTest, ReadsInFlightFinishInAnyOrderOrAreCancelled) {
  start({.ranks = 4, .flags = {{"ps", "2"}}});
  const auto v = create("v", DType::float32, {30'000, 4});
  std::vector<float> gradient(v.rows() * 4);
  std::iota(gradient.begin(), gradient.end(), 0.0F);
  client().push_dense(v, gradient.data());
  client().flush();
  const Ids ids{29'999, 3, 15'000, 3};
  std::vector<float> rows(16);
  std::vector<float> all(gradient.size());
  const Client::Lookup dense{&v, {}, all.data(), 0, v.rows()};
  const Client::Lookup sparse{&v, ids, rows.data()};
  const auto first = client().start({&dense, 1});
  const auto second = client().start({&sparse, 1});
  {
    std::vector<float> unused(gradient.size());
    const Client::Lookup cancelled{&v, {}, unused.data(), 0, v.rows()};
    client().cancel(client().start({&cancelled, 1}));
  }
  client().finish(second);
  EXPECT_EQ(rows[0], 4.0F * 29'999);
  EXPECT_EQ(rows[5], 13);
  EXPECT_EQ(rows[13], 13);
  while (!client().ready(first)) {
  }
  client().finish(first);
  EXPECT_EQ(all, gradient);
}

TEST_P(ReadModesTest, MapsAShardOfThisHost) {
  start({.ranks = 3, .flags = {{"ps", "1"}}}, 1);
  const auto v = create("v", DType::float32, Shape{2});
  if (GetParam().window != "auto") {
    expect_error_naming(Code::failed_precondition, {"\"v\"", "ps 0"}, [&] { (void)client().mapped(v); });
    return;
  }
  const auto memory = client().mapped(v);
  const std::vector<float> values{1, 2};
  client().update(v, protocol::RowOp::set, 0, 2, values.data());
  EXPECT_EQ(reinterpret_cast<const float*>(memory.get())[1], 2);
}

INSTANTIATE_TEST_SUITE_P(Paths, ReadModesTest,
                         testing::Values(PathParam{Network::loop, "auto"}, PathParam{Network::loop, "am"},
                                         PathParam{Network::ucx, "auto"}, PathParam{Network::ucx, "am"},
                                         PathParam{Network::ucx, "rma"}),
                         path_name);

/// --require-transport.
class RequiredTransportTest : public ClientFixture {};

TEST_P(RequiredTransportTest, RejectsInsufficientPaths) {
  for (const char* required : {"mapped", "rdma"}) {
    start({.ranks = 3, .flags = {{"require-transport", required}}}, 1);
    if (GetParam().window == "auto") {
      (void)create("w", DType::float32, {10});
    } else {
      try {
        (void)create("w", DType::float32, {10});
        ADD_FAILURE() << required << " was accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::failed_precondition);
        EXPECT_EQ(std::string(error.what())
                      .find(std::string("--require-transport=") + required + ": found a path to ps 0"),
                  0U)
            << error.what();
      }
    }
    TearDown();
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, RequiredTransportTest,
                         testing::Values(PathParam{Network::ucx, "auto"}, PathParam{Network::ucx, "am"}),
                         path_name);

}  // namespace
}  // namespace capstan::client
