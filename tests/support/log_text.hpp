// log_text.hpp -- captures the log while a test runs. Link the test with spdlog::spdlog.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

#include "base/log.hpp"

namespace capstan {

class LogText {
 public:
  LogText() : sink_(std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)) {
    spdlog::default_logger()->sinks().push_back(sink_);
  }
  ~LogText() { spdlog::default_logger()->sinks().pop_back(); }
  LogText(const LogText&) = delete;
  LogText& operator=(const LogText&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::sinks::sink> sink_;
};

/// Returns the number of occurrences of `word` in `text`.
inline int count_of(const std::string& word, const std::string& text) {
  int count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace capstan
