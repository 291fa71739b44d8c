// communicator_none.cpp -- a build without NCCL has groups of one GPU, and of stand-ins.
#include "capstan/error.hpp"
#include "gpu/group_driver.hpp"

namespace capstan::gpu::real {

std::string why_no_group() {
  return "several GPUs of a worker need NCCL, which this build has not: install it (Debian: libnccl-dev; "
         "NCCL_HOME says where) and build Capstan again, or use one GPU a worker (--replicas 1)";
}

std::unique_ptr<GroupDriver> make_group_driver(std::vector<const Stream*>) {
  throw Error(Code::unimplemented, why_no_group());
}

}  // namespace capstan::gpu::real
