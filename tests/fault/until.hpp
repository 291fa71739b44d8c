// until.hpp -- how long a test program runs: a number of times, or until the test creates a file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

/// Parses one argument: a number, or the name of a file that does not exist yet.
class Until {
 public:
  explicit Until(const std::string& argument) {
    if (std::all_of(argument.begin(), argument.end(), [](char c) { return '0' <= c && c <= '9'; })) {
      count_ = std::atoll(argument.c_str());
    } else {
      file_ = argument;
    }
  }

  bool is_file() const { return !file_.empty(); }
  /// The number; 0 for a file.
  std::int64_t count() const { return count_; }
  bool reached(std::int64_t done) const {
    return is_file() ? std::filesystem::exists(file_) : done >= count_;
  }

 private:
  std::int64_t count_ = 0;
  std::filesystem::path file_;
};
