// saved_names.cpp -- see saved_names.hpp.
#include "train/saved_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "capstan/error.hpp"

namespace capstan::train {

SavedNames::SavedNames(std::string_view variable, const std::vector<std::string>& names)
    : variable_name_(variable), packed_([&] {
        const std::vector<std::int64_t> packed = pack_names(names);
        Variable<std::int64_t> created(std::string(variable),
                                       Shape{static_cast<std::int64_t>(packed.size())});
        created.assign(packed);
        return created;
      }()) {}

void SavedNames::check_restored(const std::vector<std::string>& names, std::string_view where) const {
  const auto packed = packed_.pull();
  const std::vector<std::string> saved = unpack_names(packed);
  const auto [found, expected] = std::ranges::mismatch(saved, names);
  if (found == saved.end() && expected == names.end()) return;
  throw Error(Code::failed_precondition,
              fmt::format("{}: {}[{}] is \"{}\", expected \"{}\" as in --data; resume with the data that the "
                          "checkpoint was trained on",
                          where, variable_name_, found - saved.begin(), found == saved.end() ? "" : *found,
                          expected == names.end() ? "" : *expected));
}

}  // namespace capstan::train
