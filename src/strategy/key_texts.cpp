// key_texts.cpp -- see capstan/key_texts.hpp.
#include "capstan/key_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "capstan/error.hpp"

namespace capstan {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::int64_t);

std::int64_t words_for(const std::string& name, std::int64_t bytes) {
  if (bytes < 1) {
    throw Error(Code::invalid_argument,
                fmt::format("KeyTexts \"{}\": found max_bytes {}, expected at least 1", name, bytes));
  }
  return (bytes - 1) / static_cast<std::int64_t>(kWordBytes) + 1;
}

/// Returns the part of a text that is kept.
std::string stored_part(const std::string& text, std::size_t max_bytes) {
  return text.substr(0, std::min(text.find('\0'), max_bytes));
}

std::string text_in(std::span<const std::int64_t> row) {
  const std::string bytes(reinterpret_cast<const char*>(row.data()), row.size_bytes());
  return stored_part(bytes, bytes.size());
}

}  // namespace

KeyTexts::KeyTexts(const std::string& name, std::int64_t max_bytes, std::uint64_t max_keys)
    : table_(name, words_for(name, max_bytes), {}, {.max_keys = max_keys, .trainable = false}) {}

std::vector<std::int64_t> KeyTexts::keys_of(ConstSpan<std::string> texts, std::uint64_t salt) const {
  std::vector<std::int64_t> keys;
  keys.reserve(texts.size());
  for (const std::string& text : texts) keys.push_back(hash_key(text, salt));
  std::vector<std::size_t> unknown(texts.size());
  std::iota(unknown.begin(), unknown.end(), std::size_t{0});
  // The second pass finds texts that another one with the same key has replaced.
  for (int pass = 0; pass < 2; ++pass) store(texts, keys, unknown);
  return keys;
}

void KeyTexts::store(ConstSpan<std::string> texts, ConstSpan<std::int64_t> keys,
                     std::vector<std::size_t>& unknown) const {
  std::vector<std::int64_t> asked;
  asked.reserve(unknown.size());
  for (const std::size_t i : unknown) asked.push_back(keys[i]);
  const Rows<std::int64_t> rows = table_.lookup(asked, ReadMode::consistent);
  const std::size_t width = table_.width();
  std::vector<std::size_t> missing;
  std::vector<std::int64_t> new_keys, new_rows;
  for (std::size_t at = 0; at < asked.size(); ++at) {
    const std::string text = stored_part(texts[unknown[at]], width * kWordBytes);
    const std::string found = text_in(rows[at]);
    if (found == text) continue;
    if (!found.empty()) {
      throw Error(
          Code::already_exists,
          fmt::format("\"{}\" and \"{}\" have the same key, {}, in \"{}\"; use another salt for one of "
                      "their columns",
                      text, found, asked[at], table_.name()));
    }
    missing.push_back(unknown[at]);
    new_keys.push_back(asked[at]);
    new_rows.resize(new_rows.size() + width);
    std::memcpy(&new_rows[new_rows.size() - width], text.data(), text.size());
  }
  // A run of a closure stores what the runs before it have not, so its pushes differ from theirs.
  detail::TableCalls{*table_.bound()}.assign_in_every_run(new_keys, new_rows.data(), new_rows.size());
  unknown = std::move(missing);
}

std::vector<std::string> KeyTexts::texts_of(ConstSpan<std::int64_t> keys) const {
  const Rows<std::int64_t> rows = table_.lookup(keys, ReadMode::consistent);
  std::vector<std::string> texts;
  texts.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) texts.push_back(text_in(rows[i]));
  return texts;
}

}  // namespace capstan
