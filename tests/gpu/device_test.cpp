// device_test.cpp -- arrays on a GPU through the public interface.
// Tests: src/gpu/gpu_cuda.cpp
// Tests: src/gpu/gpu_none.cpp
#include "capstan/device.hpp"

#include <array>

#include "tests/gpu/gpu_to_test.hpp"

namespace capstan {
namespace {

class Device : public gpu::OnGpu {};

TEST_F(Device, ArraysRoundTripThroughTheGpu) {
  DeviceStream stream(0);
  EXPECT_EQ(stream.device(), 0);
  EXPECT_EQ(stream.cuda_stream() == nullptr, gpu::are_stand_ins());
  const std::vector<float> values{1, 2, 3};
  const DeviceArray<float> there = to_device(stream, values);
  EXPECT_EQ(there.size(), 3U);
  EXPECT_EQ(there.device(), 0);
  EXPECT_EQ(capstan::to_host(stream, there.span()), values);
  EXPECT_EQ(capstan::to_host(stream, DeviceSpan<const float>(there.span().subspan(1, 2))),
            (std::vector<float>{2, 3}));

  const std::array<float, 3> more{4, 5, 6};
  std::array<float, 3> back{};
  copy(stream, there.span(), more);
  copy(stream, std::span<float>(back), there.span());
  stream.wait();
  EXPECT_EQ(back, more);
}

TEST_F(Device, SpansConvertLikeStdSpan) {
  const DeviceArray<float> there(0, 4);
  const DeviceSpan<float> span = there.span();
  const DeviceSpan<float> same(span);
  const DeviceSpan<const float> to_read = same;
  const DeviceSpan<const float> again(to_read);
  EXPECT_EQ(again.data(), there.data());
  static_assert(!std::is_constructible_v<DeviceSpan<float>, DeviceSpan<const float>>);
  static_assert(!std::is_constructible_v<DeviceSpan<const float>, DeviceSpan<int>>);
}

TEST_F(Device, RejectsSizesAndDevicesThatDoNotMatch) {
  DeviceStream stream(0);
  const DeviceArray<int> there(0, 4);
  const std::array<int, 3> three{};
  EXPECT_THROW(copy(stream, there.span(), three), Error);
  EXPECT_THROW((void)there.span().subspan(3, 2), Error);
  EXPECT_THROW((void)there.span().subspan(5, 0), Error);
  EXPECT_THROW(DeviceStream{device_count()}, Error);
  EXPECT_THROW(DeviceArray<int>(-1, 1), Error);
}

}  // namespace
}  // namespace capstan
