// packed_names.cpp -- see packed_names.hpp.
#include "train/packed_names.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/settings.hpp"

namespace capstan::train {
namespace {

constexpr char kSeparator = '\n';

}  // namespace

std::vector<std::int64_t> pack_names(std::span<const std::string> names) {
  std::string joined;
  for (const std::string& name : names) {
    CAPSTAN_ASSERT(name.find(kSeparator) == std::string::npos);
    joined += name;
    joined += kSeparator;
  }
  std::vector<std::int64_t> packed((joined.size() + sizeof(std::int64_t) - 1) / sizeof(std::int64_t));
  if (!packed.empty()) std::memcpy(packed.data(), joined.data(), joined.size());
  return packed;
}

std::vector<std::string> unpack_names(std::span<const std::int64_t> packed) {
  const std::string_view joined(reinterpret_cast<const char*>(packed.data()), packed.size_bytes());
  std::vector<std::string> names;
  for (std::size_t begin = 0;;) {
    const std::size_t end = joined.find(kSeparator, begin);
    if (end == std::string_view::npos) return names;
    names.emplace_back(joined.substr(begin, end - begin));
    begin = end + 1;
  }
}

std::vector<std::string> near_names(std::string_view name, std::span<const std::string> names,
                                    std::size_t count) {
  std::vector<std::string> near;
  std::ranges::copy_if(names, std::back_inserter(near), [&](const std::string& other) {
    return !name.empty() && other.find(name) != std::string::npos;
  });
  std::ranges::stable_sort(near, {}, &std::string::size);
  if (near.size() > count) near.resize(count);
  if (near.empty()) {
    std::string misspelled = nearest_name(name, names);
    if (!misspelled.empty()) near.push_back(std::move(misspelled));
  }
  return near;
}

}  // namespace capstan::train
