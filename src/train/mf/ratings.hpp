// ratings.hpp -- ratings of items by users, read from text files into memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/tasks.hpp"

namespace capstan::train::mf {

/// Users and items are numbered separately, in the order of their first occurrence in the files of --data,
/// then in the other files.
struct Rating {
  std::int32_t user = 0;
  std::int32_t item = 0;
  float value = 0;
};

struct Ratings {
  std::vector<Rating> train, valid, test;
  /// Numbers of users and items in the files of --data. A larger number is of one that occurs in other files
  /// only.
  std::int64_t users = 0;
  std::int64_t items = 0;
  double mean = 0;  // of the training ratings

  const std::vector<Rating>& of(Part part) const {
    return part == Part::train ? train : part == Part::valid ? valid : test;
  }
};

/// Whether each line needs a rating.
enum class RatingColumn : bool { optional = false, required = true };

/// Reads lines `user item rating [timestamp]`. Fields are separated by tabs, `::`, commas or spaces: the
/// first of these in the first line of a file. A user or item is any text without separators. The first line
/// of a comma-separated file is skipped if its third field is not a number. Skips blank lines. Every worker
/// that reads the same files gets the same numbers. Throws Error: not_found, invalid_argument "file:line:
/// ...".
Ratings read_ratings(const PartFiles& files, RatingColumn column);

/// Items by user: sorted, each once.
class ItemsByUser {
 public:
  ItemsByUser() = default;
  explicit ItemsByUser(std::span<const Rating> ratings);

  /// Returns an empty span for a user without ratings.
  std::span<const std::int32_t> operator[](std::int64_t user) const;
  bool contains(std::int64_t user, std::int32_t item) const;
  /// Users 0 to this number minus 1 may have items.
  std::int64_t users() const noexcept { return static_cast<std::int64_t>(first_.size()) - 1; }

 private:
  std::vector<std::size_t> first_ = {0};  // by user: index of its first item; then the number of items
  std::vector<std::int32_t> items_;
};

}  // namespace capstan::train::mf
