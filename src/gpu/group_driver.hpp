// group_driver.hpp -- how several GPUs do together what a Communicator asks for.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/communicator.hpp"

namespace capstan::gpu {

/// One thread at a time.
class GroupDriver {
 public:
  GroupDriver() = default;
  virtual ~GroupDriver() = default;
  GroupDriver(const GroupDriver&) = delete;
  GroupDriver& operator=(const GroupDriver&) = delete;

  /// Gives it to the streams. REQUIRES: a part for each, count > 0. Throws Error(internal).
  virtual void give(const GroupCall& call, std::span<const Part> parts) = 0;
  /// What has gone wrong since, "" for nothing.
  virtual std::string failure() = 0;
  /// Streams need not wait any longer for what has been given; arrays are as they happen to be. Returns at
  /// once: what takes its time is for async_teardown().
  virtual void abort() noexcept = 0;
};

std::unique_ptr<GroupDriver> make_stand_in_driver(std::vector<const Stream*> streams);

namespace real {

/// By NCCL, or in a build without it refused.
std::string why_no_group();
std::unique_ptr<GroupDriver> make_group_driver(std::vector<const Stream*> streams);

}  // namespace real
}  // namespace capstan::gpu
