// staging_test.cpp -- copies to and from a GPU in pieces.
#include "gpu/staging.hpp"

#include <cstring>
#include <stdexcept>

#include "tests/gpu/gpu_to_test.hpp"

namespace capstan::gpu {
namespace {

constexpr std::size_t kPiece = 64;

std::vector<std::byte> pattern(std::size_t bytes, int salt) {
  std::vector<std::byte> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    values[i] = std::byte((i * 7 + static_cast<std::size_t>(salt)) % 251);
  return values;
}

class StagingTest : public OnGpu {
 protected:
  std::vector<std::byte> round_trip(Staging& staging, const std::vector<std::byte>& bytes,
                                    std::uint64_t unit) {
    const Values<std::byte> on_gpu(0, bytes.size());
    std::uint64_t next = 0;
    staging.to_gpu(*stream_, on_gpu.data(), bytes.size(), unit,
                   [&](std::uint64_t first, std::size_t count, std::byte* to) {
                     EXPECT_EQ(first, next);
                     EXPECT_EQ(count % unit, 0U);
                     next = first + count;
                     std::memcpy(to, bytes.data() + first, count);
                   });
    EXPECT_EQ(next, bytes.size());
    const std::byte* back = staging.from_gpu(*stream_, on_gpu.data(), bytes.size());
    std::vector<std::byte> got(bytes.size());
    for (std::size_t i = 0; i < got.size(); i += 10) {
      const std::size_t end = std::min(i + 10, got.size());
      staging.await(end);
      std::memcpy(got.data() + i, back + i, end - i);
    }
    return got;
  }
};

TEST_F(StagingTest, RoundTripsAllSizes) {
  Staging staging(0, kPiece);
  int salt = 0;
  for (const std::uint64_t unit : {1, 3, 16, 64, 100}) {
    for (const std::uint64_t units : {0, 1, 2, 5, 40}) {
      const auto bytes = pattern(unit * units, ++salt);
      EXPECT_EQ(round_trip(staging, bytes, unit), bytes) << unit << " bytes, " << units << " times";
    }
  }
}

TEST_F(StagingTest, DoesNotOverwriteABufferBeforeItsCopy) {
  Staging staging(0, kPiece);
  const Values<std::byte> on_gpu(0, 4 * kPiece);
  // The third piece reuses the first buffer. A stand-in copies the first piece only once it is waited for, so
  // an early reuse would overwrite its bytes.
  int filled = 0;
  staging.to_gpu(*stream_, on_gpu.data(), 4 * kPiece, 1,
                 [&](std::uint64_t, std::size_t count, std::byte* to) { std::memset(to, ++filled, count); });
  EXPECT_EQ(filled, 4);
  stream_->wait();
  const std::byte* back = staging.from_gpu(*stream_, on_gpu.data(), 4 * kPiece);
  staging.await(4 * kPiece);
  for (std::size_t i = 0; i < 4 * kPiece; ++i)
    ASSERT_EQ(static_cast<int>(back[i]), 1 + static_cast<int>(i / kPiece));
}

TEST_F(StagingTest, RemainsUsableAfterFillThrows) {
  Staging staging(0, kPiece);
  const auto bytes = pattern(3 * kPiece, 1);
  const Values<std::byte> on_gpu(0, bytes.size());
  EXPECT_THROW(staging.to_gpu(*stream_, on_gpu.data(), bytes.size(), 1,
                              [&](std::uint64_t first, std::size_t count, std::byte* to) {
                                if (first > 0) throw std::runtime_error("a ps is dead");
                                std::memcpy(to, bytes.data(), count);
                              }),
               std::runtime_error);
  EXPECT_EQ(round_trip(staging, bytes, 1), bytes);
}

TEST_F(StagingTest, ReadWaitsForThePreviousRead) {
  Staging staging(0, kPiece);
  const auto first = pattern(kPiece, 1), second = pattern(2 * kPiece, 2);
  const auto a = to_gpu(first), b = to_gpu(second);
  (void)staging.from_gpu(*stream_, a.data(), first.size());
  const std::byte* back = staging.from_gpu(*stream_, b.data(), second.size());
  staging.await(second.size());
  EXPECT_EQ(std::memcmp(back, second.data(), second.size()), 0);
}

}  // namespace
}  // namespace capstan::gpu
