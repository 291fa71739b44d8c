// input.cpp -- sharding rewrites a pipeline: it replaces the sources and rebuilds the operators above them.
#include "capstan/input.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"

namespace capstan {
namespace data {
namespace {

struct Share {
  std::int64_t count;
  std::int64_t index;
};

OperatorPointer with_every_nth_file(const OperatorPointer& source, Share share) {
  const Paths files = source->files();
  const auto count = static_cast<std::size_t>(share.count), index = static_cast<std::size_t>(share.index);
  if (index < files.size() && files.size() < count) {
    throw Error(
        Code::invalid_argument,
        fmt::format(
            "cannot shard by file: {} files for {} pipelines, expected at least one per pipeline; use "
            "fewer workers, AutoShardPolicy::data or AutoShardPolicy::off",
            files.size(), count));
  }
  Paths mine;
  for (std::size_t i = index; i < files.size(); i += count) mine.push_back(files[i]);
  return source->with_files(std::move(mine));
}

/// `opened` is true if an interleave above `node` opens each element of `node` as a dataset.
OperatorPointer by_file(const OperatorPointer& node, Share share, bool opened) {
  const Kind kind = node->kind();
  if (kind == Kind::files || (kind == Kind::file_names && opened)) return with_every_nth_file(node, share);
  std::vector<OperatorPointer> inputs = node->inputs();
  if (inputs.empty() || kind == Kind::transform) {
    throw Error(Code::not_found,
                fmt::format("cannot shard the pipeline by file: found '{}', expected a reader of files",
                            to_string(kind)));
  }
  for (OperatorPointer& input : inputs) input = by_file(input, share, opened || kind == Kind::interleave);
  return node->with_inputs(inputs);
}

/// Replaces every rebatch by one that splits each batch into `pieces` elements, so that sharding by element
/// divides each batch among the pipelines.
OperatorPointer with_pieces(const OperatorPointer& node, std::int64_t pieces) {
  std::vector<OperatorPointer> inputs = node->inputs();
  for (OperatorPointer& input : inputs) input = with_pieces(input, pieces);
  const OperatorPointer rebuilt = inputs.empty() ? node : node->with_inputs(inputs);
  if (rebuilt->kind() != Kind::rebatch) return rebuilt;
  return rebuilt->with_pieces(pieces);
}

OperatorPointer by_data(const OperatorPointer& node, Share share, std::int64_t pieces) {
  if (node->kind() == Kind::prefetch) return node->with_inputs({by_data(node->inputs()[0], share, pieces)});
  return with_pieces(node, pieces)->sharded(share.count, share.index, /*each_has_one=*/true);
}

OperatorPointer by_hint(const OperatorPointer& node, Share share) {
  std::vector<OperatorPointer> inputs = node->inputs();
  for (OperatorPointer& input : inputs) input = by_hint(input, share);
  const OperatorPointer rebuilt = inputs.empty() ? node : node->with_inputs(inputs);
  if (OperatorPointer filled = rebuilt->with_shard(share.count, share.index)) return filled;
  return rebuilt;
}

}  // namespace

OperatorPointer auto_sharded(const OperatorPointer& root, AutoShardPolicy policy, std::int64_t count,
                             std::int64_t index, std::int64_t pieces) {
  require_at_least(count, 1, "auto_shard: the number of pipelines");
  require_at_least(pieces, 0, "auto_shard: the number of replicas");
  if (index < 0 || index >= count) {
    throw Error(Code::invalid_argument,
                fmt::format("auto_shard: the index is {}; with {} pipelines it must be 0 to {}", index, count,
                            count - 1));
  }
  if (count == 1 && policy != AutoShardPolicy::hint) return root;
  const Share share{count, index};
  if (pieces == 0) pieces = count;
  switch (policy) {
    case AutoShardPolicy::off:
      return root;
    case AutoShardPolicy::file:
      return by_file(root, share, false);
    case AutoShardPolicy::data:
      return by_data(root, share, pieces);
    case AutoShardPolicy::hint:
      return by_hint(root, share);
    case AutoShardPolicy::automatic:
      try {
        return by_file(root, share, false);
      } catch (const Error& error) {
        if (error.code() != Code::not_found) throw;
        OperatorPointer sharded = by_data(root, share, pieces);
        log::warn(
            "auto_shard: {}; every pipeline reads all data and keeps one of every {} elements "
            "(AutoShardPolicy::data). Use a reader of files, or set the policy to data or off",
            error.what(), share.count);
        return sharded;
      }
  }
  throw Error(Code::invalid_argument,
              fmt::format("auto_shard: the policy is {}, expected a value of AutoShardPolicy",
                          static_cast<int>(policy)));
}

void check(const InputOptions& options) {
  require_at_least(options.per_replica_buffer_size, 0, "InputOptions::per_replica_buffer_size");
  if (!options.place_dataset_on_device) return;
  if (!options.fetch_to_device) {
    throw Error(Code::invalid_argument,
                "InputOptions::place_dataset_on_device is true and fetch_to_device is false, expected both "
                "to be true for a dataset on the device");
  }
  if (options.replication_mode == InputReplicationMode::per_worker) {
    throw Error(
        Code::unimplemented,
        "InputOptions::place_dataset_on_device is true with InputReplicationMode::per_worker, expected "
        "per_replica: one pipeline cannot be on several devices");
  }
}

void check(const InputPlacement& place) {
  require_at_least(place.workers, 1, "InputPlacement::workers");
  require_at_least(place.replicas, 1, "InputPlacement::replicas");
  if (place.worker < 0 || place.worker >= place.workers) {
    throw Error(Code::invalid_argument,
                fmt::format("InputPlacement::worker is {}; with {} workers it must be 0 to {}", place.worker,
                            place.workers, place.workers - 1));
  }
}

void check(const InputContext& context, std::int64_t replicas) {
  require_at_least(context.num_replicas_in_sync, 1, "InputContext::num_replicas_in_sync");
  require_at_least(context.num_input_pipelines, 1, "InputContext::num_input_pipelines");
  require_at_least(replicas, 1, "the number of replicas that a pipeline feeds");
  if (context.input_pipeline_id >= 0 && context.input_pipeline_id < context.num_input_pipelines) return;
  throw Error(Code::invalid_argument,
              fmt::format("InputContext::input_pipeline_id is {}, expected 0 to {}",
                          context.input_pipeline_id, context.num_input_pipelines - 1));
}

}  // namespace data

std::int64_t InputContext::get_per_replica_batch_size(std::int64_t global_batch_size) const {
  data::require_at_least(num_replicas_in_sync, 1, "InputContext::num_replicas_in_sync");
  if (global_batch_size % num_replicas_in_sync != 0) {
    throw Error(Code::invalid_argument,
                fmt::format("the global batch size {} is not divisible by num_replicas_in_sync {}",
                            global_batch_size, num_replicas_in_sync));
  }
  return global_batch_size / num_replicas_in_sync;
}

std::vector<std::int64_t> batch_sizes_for_worker(std::int64_t global_batch_size,
                                                 const InputPlacement& place) {
  data::check(place);
  data::require_at_least(global_batch_size, 1, "the global batch size");
  const std::int64_t count = place.workers * place.replicas;
  const std::int64_t floor = global_batch_size / count;
  const std::int64_t larger = global_batch_size - floor * count;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), floor);
  std::fill(sizes.begin(), sizes.begin() + larger, floor + 1);
  std::rotate(sizes.begin(), sizes.begin() + place.worker * place.replicas, sizes.end());
  return sizes;
}

}  // namespace capstan
