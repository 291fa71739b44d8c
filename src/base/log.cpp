// log.cpp -- one spdlog logger on standard error whose pattern shows the calling thread's rank.
#include "base/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <utility>

#include "capstan/error.hpp"

namespace capstan::log {
namespace {

thread_local std::string tag;

class RankFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& out) override {
    out.append(tag.data(), tag.data() + tag.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<RankFlag>(); }
};

/// Replaces spdlog's default logger once per process, before the first line.
const bool configured = [] {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<RankFlag>('*').set_pattern("[%H:%M:%S.%e] [%*] [%l] %v");
  auto logger =
      std::make_shared<spdlog::logger>("capstan", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::move(formatter));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return true;
}();

}  // namespace

void set_rank_tag(std::string text) { tag = std::move(text); }
const std::string& rank_tag() { return tag; }

void set_level(const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    throw Error(Code::invalid_argument,
                "log level \"" + level + "\" is none of trace, debug, info, warn, error, off");
  }
  spdlog::set_level(parsed);
}

}  // namespace capstan::log
