// communicator_none.cpp -- without NCCL a group has a single GPU, or stand-ins.
#include "capstan/error.hpp"
#include "gpu/group_driver.hpp"

namespace capstan::gpu::real {

std::string why_no_group() {
  return "several GPUs of a worker need NCCL, but this build lacks it; install NCCL (Debian: libnccl-dev; or "
         "set "
         "NCCL_HOME) and rebuild Capstan, or use one GPU per worker (--replicas 1)";
}

std::unique_ptr<GroupDriver> make_group_driver(std::vector<const Stream*>) {
  throw Error(Code::unimplemented, why_no_group());
}

}  // namespace capstan::gpu::real
