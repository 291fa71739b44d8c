// communicator_nccl.cpp -- groups of GPUs by NCCL: one communicator per GPU, called from one thread.
//
// NCCL (200 MiB) is loaded when a group of several GPUs is first created, so that programs also run without
// it.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>

#include "capstan/error.hpp"
#include "gpu/async_teardown.hpp"
#include "gpu/group_driver.hpp"
#include "gpu/real_gpu.hpp"

static_assert(NCCL_VERSION_CODE >= NCCL_VERSION(2, 13, 4), "ncclGetLastError came with NCCL 2.13");
#ifndef CAPSTAN_NCCL_LIBRARY
#define CAPSTAN_NCCL_LIBRARY "libnccl.so.2"
#endif

namespace capstan::gpu::real {
namespace {

/// The functions of NCCL that are used here. `why_none` is the reason if they could not be loaded.
struct Nccl {
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  decltype(&ncclCommInitAll) init_all = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  std::string why_none;
};

template <class Function>
void find(void* library, const char* name, Function& function, std::string& why_none) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && why_none.empty()) {
    why_none = fmt::format("the NCCL library at run time lacks {}; expected NCCL {}.{} or newer", name,
                           NCCL_MAJOR, NCCL_MINOR);
  }
}

Nccl load() {
  Nccl calls;
  // NCCL 2.22 and newer connect at the first call of each kind, in ncclGroupEnd, which has no deadline. This
  // variable makes it connect at initialization. NCCL reads it once; a user's value takes precedence.
  (void)setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen(CAPSTAN_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    calls.why_none = fmt::format(
        "several GPUs of a worker need NCCL, which cannot be loaded ({}); put libnccl.so.2 on "
        "LD_LIBRARY_PATH, or use one GPU per worker (--replicas 1)",
        reason == nullptr ? "libnccl.so.2" : reason);
    return calls;
  }
  const auto take = [&](const char* name, auto& function) { find(library, name, function, calls.why_none); };
  take("ncclGetErrorString", calls.error_string);
  take("ncclGetLastError", calls.last_error);
  take("ncclCommInitAll", calls.init_all);
  take("ncclCommDestroy", calls.destroy);
  take("ncclCommAbort", calls.abort);
  take("ncclCommGetAsyncError", calls.async_error);
  take("ncclGroupStart", calls.group_start);
  take("ncclGroupEnd", calls.group_end);
  take("ncclAllReduce", calls.all_reduce);
  take("ncclAllGather", calls.all_gather);
  take("ncclReduceScatter", calls.reduce_scatter);
  take("ncclBroadcast", calls.broadcast);
  return calls;
}

const Nccl& nccl() {
  static const Nccl loaded = load();
  return loaded;
}

Error nccl_error(const char* call, ncclResult_t answer, Where where = Where::here()) {
  const char* more = nccl().last_error(nullptr);
  std::string reason = nccl().error_string(answer);
  if (more != nullptr && *more != '\0') reason += fmt::format(": {}", more);
  if (answer == ncclUnhandledCudaError || answer == ncclSystemError)
    reason += "; set NCCL_DEBUG=INFO for details";
  return call_failed(call, reason, where);
}

void check(ncclResult_t answer, const char* call, Where where = Where::here()) {
  if (answer != ncclSuccess) throw nccl_error(call, answer, where);
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return ncclFloat32;
    case DType::float64:
      return ncclFloat64;
    case DType::int64:
      return ncclInt64;
    case DType::int32:
      return ncclInt32;
    case DType::float16:
      return ncclFloat16;
    case DType::bfloat16:
      return ncclBfloat16;
    case DType::boolean:
      return ncclUint8;
  }
  throw Error(Code::internal, "NCCL does not support this dtype");
}

ncclRedOp_t op_of(Combine combine) {
  switch (combine) {
    case Combine::sum:
      return ncclSum;
    case Combine::minimum:
      return ncclMin;
    case Combine::maximum:
      return ncclMax;
    case Combine::product:
      return ncclProd;
    case Combine::mean:
      return ncclAvg;
  }
  throw Error(Code::internal, "NCCL does not support this operation");
}

ncclResult_t enqueue_one(const GroupCall& call, const Part& part, ncclComm_t comm, cudaStream_t stream) {
  const ncclDataType_t type = type_of(call.dtype);
  switch (call.kind) {
    case GroupCall::Kind::all_reduce:
      return nccl().all_reduce(part.in, part.out, call.count, type, op_of(call.combine), comm, stream);
    case GroupCall::Kind::all_gather:
      return nccl().all_gather(part.in, part.out, call.count, type, comm, stream);
    case GroupCall::Kind::reduce_scatter:
      return nccl().reduce_scatter(part.in, part.out, call.count, type, op_of(call.combine), comm, stream);
    case GroupCall::Kind::broadcast:
      return nccl().broadcast(part.in, part.out, call.count, type, call.root, comm, stream);
  }
  return ncclInvalidArgument;
}

class NcclDriver final : public GroupDriver {
 public:
  explicit NcclDriver(std::vector<const Stream*> streams) : streams_(std::move(streams)) {
    for (const Stream* stream : streams_) devices_.push_back(stream->device());
    const DeviceGuard guard(*streams_[0]);  // NCCL restores the selected device after its calls
    std::vector<ncclComm_t> made(devices_.size(), nullptr);
    check(nccl().init_all(made.data(), static_cast<int>(made.size()), devices_.data()), "ncclCommInitAll");
    comms_ = std::move(made);
  }
  /// ncclCommDestroy waits for running calls; ncclCommAbort ends them once their kernels poll the abort flag.
  ~NcclDriver() override {
    if (!comms_.empty()) teardown_all(are_done() ? nccl().destroy : nccl().abort);
    const std::vector<int> left = async_teardown().unfinished(devices_, kTeardownTimeout);
    if (left.empty()) return;
    std::fprintf(stderr,
                 "capstan: %s: NCCL did not release a group within %d s; continuing without waiting\n",
                 gpu_list(left).c_str(), static_cast<int>(kTeardownTimeout.count()));
  }

  void enqueue(const GroupCall& call, std::span<const Part> parts) override {
    const DeviceGuard guard(*streams_[0]);
    check(nccl().group_start(), "ncclGroupStart");
    ncclResult_t worst = ncclSuccess;
    for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
      const ncclResult_t answer =
          enqueue_one(call, parts[rank], comms_[rank], static_cast<cudaStream_t>(streams_[rank]->handle()));
      if (worst == ncclSuccess) worst = answer;
    }
    const ncclResult_t end = nccl().group_end();  // every ncclGroupStart needs its end, even after an error
    const std::string name = to_string(call);
    check(worst, name.c_str());
    check(end, name.c_str());
  }

  std::string failure() override {
    for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
      ncclResult_t state = ncclSuccess;
      const ncclResult_t answer = nccl().async_error(comms_[rank], &state);
      const ncclResult_t bad = answer != ncclSuccess ? answer : state;
      if (bad == ncclSuccess) continue;
      return fmt::format("GPU {}: {}", devices_[rank], nccl_error("NCCL", bad).what());
    }
    return "";
  }

  void abort() noexcept override { teardown_all(nccl().abort); }

 private:
  bool are_done() const noexcept {
    try {
      for (const Stream* stream : streams_) {
        const DeviceGuard guard(*stream);
        if (cudaStreamQuery(static_cast<cudaStream_t>(stream->handle())) == cudaSuccess) continue;
        (void)cudaGetLastError();
        return false;
      }
      return true;
    } catch (const std::exception&) {  // the device has failed
      return false;
    }
  }

  /// Tears down all communicators concurrently, because NCCL's teardown of one waits for the others of the
  /// process. A kernel that never polls the abort flag can delay them forever, so waiting for them needs a
  /// deadline.
  void teardown_all(ncclResult_t (*teardown)(ncclComm_t)) noexcept {
    for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
      async_teardown().begin(devices_[rank], [teardown, comm = comms_[rank], device = devices_[rank]] {
        (void)cudaSetDevice(device);
        (void)teardown(comm);  // an error cannot be reported or handled here
      });
    }
    comms_.clear();
  }

  std::vector<const Stream*> streams_;
  std::vector<int> devices_;
  std::vector<ncclComm_t> comms_;  // empty after the teardown
};

}  // namespace

std::string why_no_group() { return nccl().why_none; }

std::unique_ptr<GroupDriver> make_group_driver(std::vector<const Stream*> streams) {
  if (!nccl().why_none.empty()) throw Error(Code::unimplemented, nccl().why_none);
  return std::make_unique<NcclDriver>(std::move(streams));
}

}  // namespace capstan::gpu::real
