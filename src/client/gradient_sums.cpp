// gradient_sums.cpp -- one place for each hash of an id; ids vote for their place.
#include "client/gradient_sums.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/with_type.hpp"
#include "client/combine.hpp"

namespace capstan::client {
namespace {

/// Bounds the time for which an id that is no longer frequent keeps its place.
constexpr std::uint32_t kMaxVotes = 64;
/// How many ids ahead a place is prefetched.
constexpr std::size_t kPlacesAhead = 16;

}  // namespace

GradientSums::GradientSums(DType dtype, std::uint64_t width, const CombinePushes& options)
    : dtype_(dtype),
      width_(width),
      pushes_(options.pushes),
      bits_(std::max(1, static_cast<int>(std::bit_width(options.rows - 1)))),
      places_(std::size_t{1} << bits_),
      sums_(places_.size() * width * size_of(dtype)) {}

GradientSums::Rows GradientSums::add(std::span<const std::int64_t> ids, const std::byte* gradient) {
  ids_.clear();
  order_.clear();
  ++added_;
  used_ = true;
  with_type(dtype_, [&]<class T>(std::type_identity<T>) { add_rows<T>(ids, gradient); });
  return {ids_, order_, gradient};
}

template <class T>
void GradientSums::add_rows(std::span<const std::int64_t> ids, const std::byte* gradient) {
  const std::uint64_t row_bytes = width_ * sizeof(T);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i + kPlacesAhead < ids.size())
      __builtin_prefetch(&places_[hash_slot(ids[i + kPlacesAhead], bits_)], 1);
    const std::size_t at = hash_slot(ids[i], bits_);
    Place& place = places_[at];
    if (place.id != ids[i]) {
      if (place.votes > 0) {
        --place.votes;
      } else if (!place.summed) {
        place = {ids[i], 1, false};  // no sum yet: most ids do not return
      }
      ids_.push_back(ids[i]);
      order_.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    place.votes = std::min(place.votes + 1, kMaxVotes);
    std::byte* sum = sums_.data() + at * row_bytes;
    const std::byte* row = gradient + i * row_bytes;
    if (place.summed) {
      add_row<T>(sum, row, width_);
    } else {
      std::memcpy(sum, row, row_bytes);
      place.summed = true;
      summed_.push_back(static_cast<std::uint32_t>(at));
    }
  }
}

GradientSums::Rows GradientSums::take() {
  added_ = 0;
  ids_.clear();
  for (const std::uint32_t at : summed_) {
    ids_.push_back(places_[at].id);
    places_[at].summed = false;
  }
  order_.swap(summed_);
  summed_.clear();
  return {ids_, order_, sums_.data()};
}

void GradientSums::clear() {
  if (!std::exchange(used_, false)) return;
  added_ = 0;
  summed_.clear();
  std::fill(places_.begin(), places_.end(), Place{});
}

}  // namespace capstan::client
