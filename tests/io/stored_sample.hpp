// stored_sample.hpp -- unpacks a checkpoint of an earlier version from tests/io/samples. Link with ZLIB.
#pragma once

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace capstan::io {

/// Decodes base64.
inline std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    const auto digit = kDigits.find(c);
    if (digit == std::string_view::npos) continue;  // "=", end of line
    bits = (bits << 6U) | static_cast<unsigned>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU));
  }
  return bytes;
}

/// Creates `directory` and writes the files of samples/<name>.txt (samples/pack.py) to it.
inline void unpack_sample(const std::string& name, const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  std::ifstream in(std::string(CAPSTAN_SOURCE_DIR) + "/tests/io/samples/" + name + ".txt");
  std::string word;
  std::string file;
  std::string text;
  uLongf size = 0;
  const auto write = [&] {
    if (file.empty()) return;
    const std::string packed = from_base64(text);
    std::string bytes(size, '\0');
    if (::uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                     reinterpret_cast<const Bytef*>(packed.data()), packed.size()) != Z_OK ||
        size != bytes.size()) {
      throw std::runtime_error("sample " + name + ": " + file + " cannot be unpacked");
    }
    std::ofstream(directory / file, std::ios::binary) << bytes;
    text.clear();
  };
  while (in >> word) {
    if (word == "file") {
      write();
      in >> file >> size;
    } else {
      text += word;
    }
  }
  write();
  if (file.empty()) throw std::runtime_error("sample " + name + " does not exist");
}

}  // namespace capstan::io
