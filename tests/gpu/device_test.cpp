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
  const DeviceArray<float> on_gpu = to_device(stream, values);
  EXPECT_EQ(on_gpu.size(), 3U);
  EXPECT_EQ(on_gpu.device(), 0);
  EXPECT_EQ(capstan::to_host(stream, on_gpu.span()), values);
  EXPECT_EQ(capstan::to_host(stream, DeviceSpan<const float>(on_gpu.span().subspan(1, 2))),
            (std::vector<float>{2, 3}));

  const std::array<float, 3> more{4, 5, 6};
  std::array<float, 3> back{};
  copy(stream, on_gpu.span(), more);
  copy(stream, std::span<float>(back), on_gpu.span());
  stream.wait();
  EXPECT_EQ(back, more);
}

TEST_F(Device, SpansConvertLikeStdSpan) {
  const DeviceArray<float> on_gpu(0, 4);
  const DeviceSpan<float> span = on_gpu.span();
  const DeviceSpan<float> same(span);
  const DeviceSpan<const float> read_only = same;
  const DeviceSpan<const float> read_only_copy(read_only);
  EXPECT_EQ(read_only_copy.data(), on_gpu.data());
  static_assert(!std::is_constructible_v<DeviceSpan<float>, DeviceSpan<const float>>);
  static_assert(!std::is_constructible_v<DeviceSpan<const float>, DeviceSpan<int>>);
}

TEST_F(Device, RejectsInvalidSizesAndDevices) {
  DeviceStream stream(0);
  const DeviceArray<int> on_gpu(0, 4);
  const std::array<int, 3> three{};
  EXPECT_THROW(copy(stream, on_gpu.span(), three), Error);
  EXPECT_THROW((void)on_gpu.span().subspan(3, 2), Error);
  EXPECT_THROW((void)on_gpu.span().subspan(5, 0), Error);
  EXPECT_THROW(DeviceStream{device_count()}, Error);
  EXPECT_THROW(DeviceArray<int>(-1, 1), Error);
}

}  // namespace
}  // namespace capstan
