// log.cpp -- one spdlog logger with a console sink and a file sink, whose lines carry the thread's rank tag.
#include "base/log.hpp"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "base/log_file.hpp"
#include "capstan/error.hpp"

namespace capstan::log {
namespace {

using spdlog::level::level_enum;

thread_local std::string tag;

class RankFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& out) override {
    out.append(tag.data(), tag.data() + tag.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<RankFlag>(); }
};

std::unique_ptr<spdlog::formatter> formatter(const std::string& pattern) {
  auto made = std::make_unique<spdlog::pattern_formatter>();
  made->add_flag<RankFlag>('*').set_pattern(pattern);
  return made;
}

/// Replaces spdlog's default logger before the first line is logged. Both sinks exist from the start, because
/// a logger's list of sinks must not change while other threads log.
struct Sinks {
  std::shared_ptr<spdlog::sinks::stderr_sink_mt> console = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  std::shared_ptr<LogFile> file = std::make_shared<LogFile>(*console);

  Sinks() {
    auto logger = std::make_shared<spdlog::logger>("capstan", spdlog::sinks_init_list{console, file});
    logger->set_formatter(formatter("[%H:%M:%S.%e] [%*] [%l] %v"));
    logger->flush_on(spdlog::level::trace);
    console->set_level(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
  }
  /// Sets the logger's level to the lower of both sinks', so that it does not format lines that neither
  /// writes.
  void set_logger_level() const {
    spdlog::set_level(static_cast<level_enum>(std::min<int>(console->level(), file->level())));
  }
};
const Sinks sinks;

level_enum level_of(Level level) {
  switch (level) {
    case Level::debug:
      return level_enum::debug;
    case Level::info:
      return level_enum::info;
    case Level::warn:
      return level_enum::warn;
    case Level::error:
      break;
  }
  return level_enum::err;
}

}  // namespace

void write(Level level, fmt::string_view format, fmt::format_args values) noexcept {
  spdlog::logger& logger = *spdlog::default_logger_raw();
  if (!logger.should_log(level_of(level))) return;
  try {
    logger.log(level_of(level), fmt::vformat(format, values));
  } catch (const std::exception&) {  // out of memory
  }
}

void set_rank_tag(std::string text) { tag = std::move(text); }
const std::string& rank_tag() { return tag; }

void set_level(const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    throw Error(Code::invalid_argument,
                "log level: found \"" + level + "\", expected trace, debug, info, warn, error or off");
  }
  sinks.console->set_level(parsed);
  if (sinks.file->level() != spdlog::level::off) sinks.file->set_level(std::min(parsed, spdlog::level::info));
  sinks.set_logger_level();
}

void also_to(const std::filesystem::path& file, int rank) {
  sinks.file->set_formatter(formatter(fmt::format("[%Y-%m-%d %H:%M:%S.%e] [rank {}] [%*] [%l] %v", rank)));
  sinks.file->open(file, std::min(sinks.console->level(), spdlog::level::info));
  sinks.set_logger_level();
  if (sinks.file->level() == spdlog::level::off) return;
  const std::string text = fmt::format("process {} started", getpid());
  sinks.file->log(spdlog::details::log_msg("capstan", spdlog::level::info, text));
}

}  // namespace capstan::log
