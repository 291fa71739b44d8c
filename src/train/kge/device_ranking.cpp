// device_ranking.cpp -- see device_ranking.hpp: allocation of the table, and the plan of a slice.
#include "train/kge/device_ranking.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "capstan/error.hpp"
#include "train/kge/device_ranking_bodies.hpp"

namespace capstan::kge {
namespace {

/// Minimum number of scores in memory; fewer would leave the GPU idle.
constexpr std::size_t kMinScores = std::size_t{1} << 16;
/// Upper bound of the memory that is left to other users of the GPU: workers, and ps that save.
constexpr std::uint64_t kMaxReserve = std::uint64_t{256} << 20;

}  // namespace

DeviceRanker::DeviceRanker(const RankerOptions& options, const TrueAnswers& true_answers,
                           const gpu::Stream& stream, std::size_t max_scores)
    : options_(options),
      dim_(static_cast<std::uint32_t>(options.dim)),
      true_answers_(&true_answers),
      stream_(stream),
      max_scores_(max_scores) {
  CAPSTAN_ASSERT(options.dim > 0 && options.entities > 0 && options.relations > 0 && max_scores > 0);
  CAPSTAN_ASSERT(options.entities < std::int64_t{1} << 31);
}

DeviceRanker::~DeviceRanker() = default;

float* DeviceRanker::make_table() {
  if (has_table()) return table_.data();
  const auto entities = static_cast<std::size_t>(options_.entities);
  const gpu::Info before = gpu::info(stream_.device());
  const std::uint64_t reserve = std::min(before.bytes / 16, kMaxReserve);
  const std::uint64_t table = entities * (std::uint64_t{dim_} + 1) * sizeof(float);
  const std::uint64_t needed = table + reserve + 2 * kMinScores * sizeof(float);
  const auto out_of_memory = [&](const std::string& why) {
    return Error(Code::resource_exhausted,
                 fmt::format("cannot rank {} entities of {} floats on GPU {} ({}): {}", entities, dim_,
                             stream_.device(), before.name, why));
  };
  if (before.free_bytes < needed) {
    constexpr double kMiB = 1 << 20;
    throw out_of_memory(
        fmt::format("the table and the reserve for other processes need {:.1f} MiB, {:.1f} of {:.1f} MiB are "
                    "free",
                    static_cast<double>(needed) / kMiB, static_cast<double>(before.free_bytes) / kMiB,
                    static_cast<double>(before.bytes) / kMiB));
  }
  score_capacity_ =
      std::min<std::size_t>(max_scores_, (before.free_bytes - table - reserve) / 2 / sizeof(float));
  try {
    squares_ = gpu::Values<float>(stream_.device(), entities);
    largest_square_ = gpu::Values<std::uint32_t>(stream_.device(), 1);
    table_ = gpu::Values<float>(stream_.device(), entities * dim_);
  } catch (const Error& error) {  // allocated by another process in the meantime, or fragmented
    drop_table();
    if (error.code() == Code::resource_exhausted) throw out_of_memory(error.what());
    throw;
  }
  return table_.data();
}

void DeviceRanker::drop_table() {
  stream_.wait();
  table_ = {};
  squares_ = {};
  scores_ = {};
}

void DeviceRanker::plan(std::span<const Triple> slice) {
  CAPSTAN_ASSERT(!slice.empty());
  const std::size_t size = slice.size(), queries = 2 * size;
  relation_occurrences_.resize(queries);
  words_.resize(3 * queries);
  known_.clear();
  known_begins_.clear();
  const auto add = [&](std::size_t query, std::int32_t entity, std::int32_t relation, std::int32_t answer) {
    relation_occurrences_[query] = relation;
    words_[query] = static_cast<std::uint32_t>(entity);
    words_[2 * queries + query] = static_cast<std::uint32_t>(answer);
    known_begins_.push_back(static_cast<std::uint32_t>(known_.size()));
    const auto known = true_answers_->of(entity, relation);
    const auto mask = [&](std::int32_t id) {
      known_.push_back({static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(id)});
    };
    for (const std::int32_t id : known) mask(id);
    if (!std::binary_search(known.begin(), known.end(), answer)) mask(answer);
  };
  for (std::size_t i = 0; i < size; ++i) {
    add(i, slice[i].head, slice[i].relation, slice[i].tail);
  }
  for (std::size_t i = 0; i < size; ++i) {
    const auto reciprocal = static_cast<std::int32_t>(slice[i].relation + options_.relations);
    add(size + i, slice[i].tail, reciprocal, slice[i].head);
  }
  known_begins_.push_back(static_cast<std::uint32_t>(known_.size()));
  relation_index_.build(relation_occurrences_);
  for (std::size_t query = 0; query < queries; ++query) {
    words_[queries + query] = static_cast<std::uint32_t>(relation_index_.positions()[query]);
  }
}

std::vector<double> DeviceRanker::ranks() const {
  std::vector<double> ranks;
  ranks.reserve(counts_.size());
  for (const RankCounts& counts : counts_) {
    ranks.push_back(1 + static_cast<double>(counts.better) + static_cast<double>(counts.equal) / 2);
  }
  return ranks;
}

}  // namespace capstan::kge
