// variable_on_gpu.cpp -- reads into a GPU's memory and pushes from it.
#include <fmt/format.h>

#include "capstan/error.hpp"
#include "capstan/variable.hpp"
#include "client/checks.hpp"
#include "strategy/bound_checks.hpp"
#include "strategy/context.hpp"

namespace capstan {
namespace {

using strategy::BoundVariable;
using strategy::ClientUse;

bool may_go_direct(const BoundVariable& bound) {
  return bound.context->runtime().settings().text("gpu-transfer") != "staged";
}

/// Returns true if an adapter is to access the GPU's memory directly. Throws Error(failed_precondition) if
/// the settings require it and it is impossible.
bool goes_direct(const BoundVariable& bound, const ClientUse& client, const char* call) {
  const std::string& wanted = bound.context->runtime().settings().text("gpu-transfer");
  if (wanted == "staged") return false;
  const bool reaches = client->reaches_from_gpu(bound.descriptor);
  if (reaches || wanted == "auto") return reaches;
  throw Error(
      Code::failed_precondition,
      fmt::format("{} of variable \"{}\": --gpu-transfer=direct requires an adapter that reaches every shard "
                  "(--window), and a UCX with CUDA support (ucx_info -d lists cuda_copy; 1.16 or later, or "
                  "UCX_PROTO_ENABLE=y); use --gpu-transfer=auto",
                  call, bound.descriptor.name));
}

/// Returns the same for a pull. An adapter cannot read int8 rows, which the ps converts.
bool pulls_directly(const BoundVariable& bound, const ClientUse& client) {
  if (!bound.descriptor.storage.int8) return goes_direct(bound, client, "pull");
  if (bound.context->runtime().settings().text("gpu-transfer") == "direct") {
    throw Error(Code::failed_precondition,
                fmt::format("pull of variable \"{}\": found int8_rows, which the ps converts; "
                            "--gpu-transfer=direct expects rows that an adapter can read; use "
                            "--gpu-transfer=auto",
                            bound.descriptor.name));
  }
  return false;
}

/// Reads in pieces through pinned memory; a consistent read is one piece. REQUIRES: the caller holds a
/// ClientUse, which guards that memory.
void read_rows(const BoundVariable& bound, const DeviceStream& stream, void* out, std::uint64_t rows,
               ReadMode mode, const gpu::Staging::Fill& fill) {
  const std::uint64_t row_bytes = bound.descriptor.row_bytes();
  if (rows == 0 || row_bytes == 0) return;
  const std::uint64_t unit = mode == ReadMode::consistent ? rows * row_bytes : row_bytes;
  bound.context->staging(stream.device())
      .to_gpu(stream.implementation(), static_cast<std::byte*>(out), rows * row_bytes, unit, fill);
}

/// Sends the sums of combined pushes, and combines none while it exists. Two runs of a function may transfer
/// rows of GPUs in different ways, but must send the same pushes.
class PushesAtOnce {
 public:
  explicit PushesAtOnce(const ClientUse& client) : client_(*client), before_(client_.combine_pushes(false)) {}
  ~PushesAtOnce() { client_.combine_pushes(before_); }
  PushesAtOnce(const PushesAtOnce&) = delete;
  PushesAtOnce& operator=(const PushesAtOnce&) = delete;

 private:
  client::Client& client_;
  bool before_;
};

}  // namespace

void AnyVariable::lookup_to_gpu(const DeviceStream& stream, std::span<const std::int64_t> ids, void* out,
                                std::size_t room, ReadMode mode) const {
  strategy::check_elements(*bound_, room, ids.size(), "lookup");
  client::check_ids(bound_->descriptor, ids);
  const ClientUse client = bound_->context->use_client();
  if (mode == ReadMode::relaxed && may_go_direct(*bound_) &&
      client->gpu().lookup(bound_->descriptor, ids, static_cast<std::byte*>(out), stream.implementation(),
                           bound_->context->staging(stream.device()))) {
    return;
  }
  const std::uint64_t row_bytes = bound_->descriptor.row_bytes();
  read_rows(*bound_, stream, out, ids.size(), mode,
            [&](std::uint64_t first, std::size_t bytes, std::byte* to) {
              client->lookup(bound_->descriptor, ids.subspan(first / row_bytes, bytes / row_bytes), to, mode);
            });
}

void AnyVariable::pull_to_gpu(const DeviceStream& stream, std::uint64_t first_row, void* out,
                              std::size_t elements, ReadMode mode) const {
  const std::uint64_t rows = strategy::rows_of(*bound_, elements);
  strategy::check_elements(*bound_, elements, rows, "pull");
  const ClientUse client = bound_->context->use_client();
  if (mode == ReadMode::relaxed && may_go_direct(*bound_) &&
      client->gpu().pull(bound_->descriptor, first_row, rows, static_cast<std::byte*>(out),
                         stream.implementation())) {
    return;
  }
  if (mode == ReadMode::relaxed && pulls_directly(*bound_, client)) {
    stream.wait();  // earlier work may use `out`
    return client->pull(bound_->descriptor, first_row, rows, out, mode);
  }
  const std::uint64_t row_bytes = bound_->descriptor.row_bytes();
  read_rows(*bound_, stream, out, rows, mode, [&](std::uint64_t first, std::size_t bytes, std::byte* to) {
    client->pull(bound_->descriptor, first_row + first / row_bytes, bytes / row_bytes, to, mode);
  });
}

void AnyVariable::push_from_gpu(const DeviceStream& stream, std::span<const std::int64_t> ids,
                                const void* gradient, std::size_t elements) const {
  strategy::check_elements(*bound_, elements, ids.size(), "push");
  strategy::check_push(*bound_);
  const ClientUse client = bound_->context->use_client();
  const PushesAtOnce at_once(client);
  if (bound_->context->gradients().passes_all() && may_go_direct(*bound_) &&
      client->gpu().push(bound_->descriptor, ids, static_cast<const std::byte*>(gradient),
                         stream.implementation(), bound_->context->staging(stream.device()))) {
    return;
  }
  gpu::Staging& staging = bound_->context->staging(stream.device());
  const std::uint64_t bytes = elements * size_of(dtype());
  const std::byte* staged =
      staging.from_gpu(stream.implementation(), static_cast<const std::byte*>(gradient), bytes);
  staging.await(bytes);
  push(ids, staged, elements);
}

void AnyVariable::push_dense_from_gpu(const DeviceStream& stream, const void* gradient,
                                      std::size_t elements) const {
  strategy::check_elements(*bound_, elements, rows(), "push_dense");
  strategy::check_push(*bound_);
  const ClientUse client = bound_->context->use_client();
  const PushesAtOnce at_once(client);
  const bool unchecked = bound_->context->gradients().passes_all();
  if (unchecked && may_go_direct(*bound_) &&
      client->gpu().push(bound_->descriptor, std::nullopt, static_cast<const std::byte*>(gradient),
                         stream.implementation(), bound_->context->staging(stream.device()))) {
    return;
  }
  if (unchecked && goes_direct(*bound_, client, "push_dense")) {
    stream.wait();
    return client->push_dense_from_gpu(bound_->descriptor, gradient);
  }
  gpu::Staging& staging = bound_->context->staging(stream.device());
  const std::uint64_t bytes = elements * size_of(dtype());
  const std::byte* staged =
      staging.from_gpu(stream.implementation(), static_cast<const std::byte*>(gradient), bytes);
  if (!unchecked) {
    staging.await(bytes);
    return push_dense(staged, elements);
  }
  const client::Arrival arrival = [&](std::uint64_t upto) { staging.await(upto); };
  client->push_dense(bound_->descriptor, staged, &arrival);
}

}  // namespace capstan
