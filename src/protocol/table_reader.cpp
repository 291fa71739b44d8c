// table_reader.cpp -- epochs of a read.
#include "protocol/table_reader.hpp"

namespace capstan::protocol {

void TableReader::Epochs::begin(const TableReader& reader) noexcept {
  changed_any_ = false;
  const TableHeader& header = reader.header();
  for (std::uint32_t s = 0; s < TableHeader::kSubIndexes; ++s) {
    const SubIndex& sub_index = header.sub_indexes[s];
    epochs_[s] = __atomic_load_n(&sub_index.epoch, __ATOMIC_ACQUIRE);
    const std::uint64_t level = __atomic_load_n(&sub_index.level, __ATOMIC_ACQUIRE);
    const auto* first = reinterpret_cast<const IndexLine*>(reader.memory_ + reader.layout_->lines(s, level));
    index_[s] = {first, (std::uint64_t{1} << level) - 1};
  }
}

bool TableReader::Epochs::check(const TableReader& reader) noexcept {
  changed_any_ = false;
  for (std::uint32_t s = 0; s < TableHeader::kSubIndexes; ++s) {
    changed_[s] = __atomic_load_n(&reader.header().sub_indexes[s].epoch, __ATOMIC_RELAXED) != epochs_[s];
    changed_any_ |= changed_[s];
  }
  return !changed_any_;
}

}  // namespace capstan::protocol
