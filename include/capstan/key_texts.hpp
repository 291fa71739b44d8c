// key_texts.hpp -- keeps the texts from which keys of dynamic tables were made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capstan/detail/const_span.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/dynamic_table.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

/// Turns texts into keys, and keys back into texts. The texts are the rows of a dynamic table of their own,
/// so they are in checkpoints and survive failures as rows do. Any number of tables may use the keys. Made
/// on the coordinator in the scope of a strategy; may be passed to closures as an argument.
class CAPSTAN_API KeyTexts {
 public:
  /// Creates the table `name`. `max_bytes`: of a text, rounded up to a multiple of 8; the end of a longer
  /// text is not kept. `max_keys`: as in TableOptions; further texts are not kept. Throws Error as
  /// DynamicTable does.
  explicit KeyTexts(const std::string& name, std::int64_t max_bytes = 64,
                    std::uint64_t max_keys = TableOptions{}.max_keys);

  /// Returns hash_key(text, salt) of each text, and keeps the texts that are new. Reads the texts of all
  /// keys; if some are new, waits for this rank's earlier pushes. Throws Error(already_exists), which names
  /// both texts, if another text has the same key. If two ranks add such texts at the same time, one of the
  /// texts replaces the other, and possibly only a later call with the replaced text throws.
  std::vector<std::int64_t> keys_of(ConstSpan<std::string> texts, std::uint64_t salt = 0) const;
  /// Returns the text of each key; an empty text for a key without one. A text ends at its first zero byte.
  std::vector<std::string> texts_of(ConstSpan<std::int64_t> keys) const;

  /// The table of the texts: 8 bytes in each element. For erase() and statistics().
  const DynamicTable<std::int64_t>& table() const noexcept { return table_; }

 private:
  friend struct Serializer<KeyTexts>;
  explicit KeyTexts(const DynamicTable<std::int64_t>& table) : table_(table) {}

  void store(ConstSpan<std::string> texts, ConstSpan<std::int64_t> keys,
             std::vector<std::size_t>& unknown) const;

  DynamicTable<std::int64_t> table_;
};

template <>
struct Serializer<KeyTexts> {
  static void write(Writer& out, const KeyTexts& texts) { capstan::write(out, texts.table_); }
  static KeyTexts read(Reader& in) { return KeyTexts(capstan::read<DynamicTable<std::int64_t>>(in)); }
};

}  // namespace capstan
