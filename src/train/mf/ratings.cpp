// ratings.cpp -- splits lines into fields, numbers users and items, and sorts the items of each user.
#include "train/mf/ratings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/printable.hpp"
#include "capstan/error.hpp"
#include "io/data/line_reader.hpp"
#include "io/data/numbers.hpp"
#include "train/example_selector.hpp"

namespace capstan::train::mf {
namespace {

constexpr std::size_t kColumns = 4;  // user, item, rating, timestamp

/// Maps names to numbers in the order of their first occurrence.
class Numbering {
 public:
  std::int32_t number_of(std::string_view name) {
    if (const auto at = numbers_.find(name); at != numbers_.end()) return at->second;
    if (numbers_.size() > std::numeric_limits<std::int32_t>::max()) {
      throw Error(Code::out_of_range, "the ratings have more than 2^31 - 1 users or items");
    }
    return numbers_.emplace(name, static_cast<std::int32_t>(numbers_.size())).first->second;
  }
  std::int64_t size() const { return static_cast<std::int64_t>(numbers_.size()); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> numbers_;
};

std::string_view separator_of(std::string_view line) {
  for (const std::string_view separator : {"\t", "::", ","}) {
    if (line.find(separator) != std::string_view::npos) return separator;
  }
  return " ";
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<float> number_in(std::string_view text) {
  float value = 0;
  const char* end = text.data() + text.size();
  if (io::parse_float(text.data(), end, value) != end || text.empty()) return std::nullopt;
  return value;
}

/// Reads the lines of one file.
class RatingFile {
 public:
  RatingFile(const std::filesystem::path& path, RatingColumn column) : reader_(path), column_(column) {}

  /// Returns false at the end. The fields are valid until the next call.
  bool next(std::string_view& user, std::string_view& item, float& rating) {
    for (std::string_view line; reader_.next(line);) {
      line = trimmed(line);
      if (line.empty()) continue;
      const bool first = separator_.empty();
      if (first) separator_ = separator_of(line);
      const std::size_t count = split(line);
      const std::size_t needed = column_ == RatingColumn::required ? 3 : 2;
      if (count < needed || count > kColumns || fields_[0].empty() || fields_[1].empty()) {
        reader_.throw_error(fmt::format(
            "expected user, item{}, found {}",
            needed == 3 ? ", rating and at most a timestamp" : " and at most a rating and a timestamp",
            printable(line)));
      }
      if (count > 2) {
        const auto value = number_in(fields_[2]);
        if (!value && first && separator_ == ",") continue;  // the names of the columns
        if (!value || !std::isfinite(*value)) {
          reader_.throw_error("expected a finite number as the rating, found " + printable(fields_[2]));
        }
        rating = *value;
      }
      user = fields_[0];
      item = fields_[1];
      return true;
    }
    return false;
  }

 private:
  /// Sets `fields_`; returns their number, which may exceed kColumns.
  std::size_t split(std::string_view line) {
    std::size_t count = 0;
    while (true) {
      const std::size_t at = line.find(separator_);
      if (count < kColumns) fields_[count] = trimmed(line.substr(0, at));
      ++count;
      if (at == std::string_view::npos) return count;
      line.remove_prefix(at + separator_.size());
      if (separator_ == " ") line = trimmed(line);  // several spaces separate as one does
    }
  }

  io::LineReader reader_;
  RatingColumn column_;
  std::string_view separator_;
  std::array<std::string_view, kColumns> fields_;
};

std::vector<Rating> read_files(const std::vector<std::string>& files, RatingColumn column, Numbering& users,
                               Numbering& items) {
  std::vector<Rating> ratings;
  std::string_view user, item;
  for (const auto& path : files) {
    RatingFile file(path, column);
    for (float value = 0; file.next(user, item, value);) {
      ratings.push_back({users.number_of(user), items.number_of(item), value});
    }
  }
  if (ratings.empty() && !files.empty()) {
    throw Error(Code::invalid_argument, files.front() + " has no ratings, expected at least one");
  }
  return ratings;
}

}  // namespace

Ratings read_ratings(const PartFiles& files, RatingColumn column) {
  Numbering users, items;
  Ratings ratings;
  const std::vector<Rating> data = read_files(files.train, column, users, items);
  ratings.users = users.size();
  ratings.items = items.size();
  ExampleSelector selector(0, 1, split_of(Part::train, files));
  for (const Rating& rating : data) (selector.next() ? ratings.train : ratings.valid).push_back(rating);
  double sum = 0;
  for (const Rating& rating : ratings.train) sum += static_cast<double>(rating.value);
  ratings.mean = ratings.train.empty() ? 0 : sum / static_cast<double>(ratings.train.size());
  if (files.valid_fraction == 0) ratings.valid = read_files(files.valid, column, users, items);
  ratings.test = read_files(files.test, column, users, items);
  return ratings;
}

ItemsByUser::ItemsByUser(std::span<const Rating> ratings) {
  std::vector<Rating> sorted(ratings.begin(), ratings.end());
  std::sort(sorted.begin(), sorted.end(), [](const Rating& a, const Rating& b) {
    return a.user != b.user ? a.user < b.user : a.item < b.item;
  });
  const auto is_same = [](const Rating& a, const Rating& b) { return a.user == b.user && a.item == b.item; };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), is_same), sorted.end());
  for (const Rating& rating : sorted) {
    first_.resize(static_cast<std::size_t>(rating.user) + 1, items_.size());
    items_.push_back(rating.item);
  }
  first_.push_back(items_.size());
}

std::span<const std::int32_t> ItemsByUser::operator[](std::int64_t user) const {
  if (user >= users()) return {};
  const auto at = static_cast<std::size_t>(user);
  return std::span(items_).subspan(first_[at], first_[at + 1] - first_[at]);
}

bool ItemsByUser::contains(std::int64_t user, std::int32_t item) const {
  const auto items = (*this)[user];
  return std::binary_search(items.begin(), items.end(), item);
}

}  // namespace capstan::train::mf
