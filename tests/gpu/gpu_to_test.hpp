// gpu_to_test.hpp -- a fixture with GPU 0, or a stand-in if there is none. With CAPSTAN_TESTS_GPU in the
// environment a missing GPU is a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "gpu/gpu.hpp"

namespace capstan::gpu {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(count() == 0 && std::getenv("CAPSTAN_TESTS_GPU") != nullptr) << why_none();
    if (count() == 0) use_stand_ins(1);
    stream_.emplace(0);
  }
  void TearDown() override {
    stream_.reset();
    if (are_stand_ins()) use_stand_ins(0);
  }
  template <class T>
  Values<T> to_gpu(const std::vector<T>& values) const {
    Values<T> on_gpu(0, values.size());
    copy(*stream_, on_gpu.data(), values.data(), values.size() * sizeof(T));
    stream_->wait();
    return on_gpu;
  }
  template <class T>
  std::vector<T> to_host(const Values<T>& values) const {
    std::vector<T> on_host(values.size());
    copy(*stream_, on_host.data(), values.data(), on_host.size() * sizeof(T));
    stream_->wait();
    return on_host;
  }

  std::optional<Stream> stream_;
};

}  // namespace capstan::gpu
