// job_secret_test.cpp -- messages without the job's secret reach no handler.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <set>

#include "networks.hpp"
#include "support/log_text.hpp"
#include "transport/ucx/peer.hpp"

namespace capstan::transport {
namespace {

constexpr std::uint16_t kMessageType = 5;

class JobSecretTest : public NetworkTest {
 protected:
  void SetUp() override {
    listener_->set_secret(secret_);
    listener_->on_message(kMessageType, [this](const Message& message) { senders_.push_back(message.from); });
  }
  UcxFabric& ucx(const std::shared_ptr<Fabric>& fabric) { return static_cast<UcxFabric&>(*fabric); }
  bool progress_both_until(Fabric& other, const std::function<bool()>& done) {
    return spin_until(*listener_, [&] {
      other.progress();
      return done();
    });
  }

  const JobSecret secret_ = JobSecret::random();
  std::shared_ptr<Fabric> listener_ = open(0);
  std::vector<int> senders_;  // of the messages that the handler has received
};

TEST_P(JobSecretTest, DropsOnlyMessagesWithoutTheSecret) {
  const LogText log;
  const auto without = open(1), guesses = open(2), insider = open(3);
  guesses->set_secret({secret_.high, secret_.low ^ 1});
  insider->set_secret(secret_);
  const std::vector<std::byte> large = pattern(300'000, 1);
  std::uint64_t sent = 0;
  for (const auto& outsider : {without, guesses}) {
    Peer& peer = connect(*outsider, *listener_, "listener");
    for (int i = 0; i < 3; ++i, ++sent)
      peer.send(kMessageType, bytes_of("header"), i == 2 ? Bytes(large) : Bytes());
    EXPECT_TRUE(progress_both_until(*outsider, [&] { return ucx(listener_).rejected() == sent; }));
  }
  connect(*insider, *listener_, "listener").send(kMessageType, bytes_of("header"), large);
  EXPECT_TRUE(progress_both_until(*insider, [&] { return !senders_.empty(); }));
  EXPECT_EQ(senders_, std::vector<int>{3});
  EXPECT_EQ(ucx(listener_).rejected(), sent);
  EXPECT_EQ(count_of("without this job's secret", log.text()), 1) << log.text();
  for (const std::uint64_t half : {secret_.high, secret_.low}) {
    for (const std::string& text :
         {fmt::format("{:x}", half), fmt::format("{:X}", half), fmt::format("{}", half)})
      EXPECT_EQ(log.text().find(text), std::string::npos);
  }
}

TEST_P(JobSecretTest, DropsRawMessagesOfAnyLength) {
  const auto outsider = open(1), insider = open(2);
  insider->set_secret(secret_);
  auto& peer = static_cast<UcxPeer&>(connect(*outsider, *listener_, "listener"));
  const std::vector<std::byte> header(64, std::byte{0});
  const std::vector<std::byte> payload(1 << 20);
  std::uint64_t sent = 0;
  for (const unsigned flags : {unsigned{UCP_AM_SEND_FLAG_EAGER}, unsigned{UCP_AM_SEND_FLAG_RNDV}}) {
    for (const std::size_t header_bytes : {0, 1, 8, 16, 23, 24, 64}) {
      ucp_request_param_t param{};
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = flags;
      const ucs_status_ptr_t request = ucp_am_send_nbx(peer.endpoint(), kActiveMessageId, header.data(),
                                                       header_bytes, payload.data(), payload.size(), &param);
      ASSERT_FALSE(UCS_PTR_IS_ERR(request));
      ++sent;
      // A rendezvous send completes, too, although no handler receives its data.
      const auto completed = [&] {
        return request == nullptr || ucp_request_check_status(request) != UCS_INPROGRESS;
      };
      EXPECT_TRUE(
          progress_both_until(*outsider, [&] { return completed() && ucx(listener_).rejected() == sent; }))
          << header_bytes << " bytes, flags " << flags;
      if (request != nullptr) ucp_request_free(request);
    }
  }
  connect(*insider, *listener_, "listener").send(kMessageType, {});
  EXPECT_TRUE(progress_both_until(*insider, [&] { return !senders_.empty(); }));
  EXPECT_EQ(senders_, std::vector<int>{2});
}

TEST(JobSecret, IsRandom) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> drawn;
  for (int i = 0; i < 100; ++i) {
    const JobSecret secret = JobSecret::random();
    EXPECT_TRUE(drawn.emplace(secret.high, secret.low).second);
    EXPECT_FALSE(secret == JobSecret());
    EXPECT_FALSE(secret == (JobSecret{secret.high ^ 1, secret.low}));
    EXPECT_FALSE(secret == (JobSecret{secret.high, secret.low ^ (std::uint64_t{1} << 63)}));
    EXPECT_TRUE(secret == (JobSecret{secret.high, secret.low}));
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, JobSecretTest, testing::Values(Kind::ucx), kind_name);

}  // namespace
}  // namespace capstan::transport
