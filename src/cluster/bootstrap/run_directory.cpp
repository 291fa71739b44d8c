// run_directory.cpp -- one JSON file, replaced atomically.
#include "cluster/bootstrap/run_directory.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/json.hpp"
#include "base/log.hpp"
#include "capstan/error.hpp"
#include "cluster/bootstrap/socket.hpp"
#include "cluster/runtime.hpp"

extern char** environ;

namespace capstan::cluster {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;
constexpr std::string_view kName = "cluster.json";
constexpr std::size_t kMaxBytes = 1 << 20;

std::string to_hex(const Token& token) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : token) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

bool is_token(const std::string& text) {
  return text.size() == 2 * kTokenBytes && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// REQUIRES: is_token.
Token from_hex(const std::string& text) {
  Token token;
  for (std::size_t i = 0; i < kTokenBytes; ++i) {
    token[i] = std::byte(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  }
  return token;
}

Error failed(const char* call, const fs::path& path) {
  const Code code = errno == ENOENT                     ? Code::not_found
                    : errno == EACCES || errno == ELOOP ? Code::permission_denied
                                                        : Code::resource_exhausted;
  return Error(code, path.string() + ": " + call + ": " + std::strerror(errno));
}

void write_whole(int fd, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw failed("write", path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string read_whole(int fd, const fs::path& path) {
  std::string text(kMaxBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw failed("read", path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxBytes) throw Error(Code::data_loss, path.string() + ": too long, expected at most 1 MiB");
  text.resize(size);
  return text;
}

}  // namespace

Token random_token() {
  Token token;
  if (getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    throw call_failed("getrandom", std::strerror(errno));
  }
  return token;
}

Token token_in(const std::string& source, const std::string& text) {
  if (!is_token(text)) {
    throw Error(Code::invalid_argument,
                source + ": expected 64 hexadecimal digits, such as the output of `openssl rand -hex 32`");
  }
  return from_hex(text);
}

RunFile run_file_of_this_process() {
  RunFile file;
  file.host = host_name();
  file.pid = getpid();
  file.token = random_token();
  std::error_code ignored;  // `capstan join` then reports that the program does not exist
  file.program = fs::read_symlink("/proc/self/exe", ignored).string();
  file.directory = fs::current_path(ignored).string();
  std::ifstream words("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(words, word, '\0');) file.arguments.push_back(word);
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    if (!entry.starts_with("CAPSTAN_") && !entry.starts_with("UCX_")) continue;
    if (entry.starts_with("CAPSTAN_JOB_TOKEN=")) continue;
    const auto equals = entry.find('=');
    if (equals != entry.npos) file.environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return file;
}

void write_run_file(const fs::path& directory, const RunFile& file) {
  const nlohmann::json json{
      {"version", kVersion},         {"host", file.host},           {"pid", file.pid},
      {"address", file.address},     {"token", to_hex(file.token)}, {"program", file.program},
      {"arguments", file.arguments}, {"directory", file.directory}, {"environment", file.environment}};
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) throw failed("mkdir", directory);
  const fs::path path = directory / kName;
  const fs::path temporary = path.string() + "." + file.host + "." + std::to_string(file.pid);
  (void)unlink(temporary.c_str());  // left by a previous process with this pid
  const Socket out(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!out) throw failed("open", temporary);
  try {
    write_whole(out.get(), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                temporary);
    if (rename(temporary.c_str(), path.c_str()) != 0) throw failed("rename", path);
  } catch (const Error&) {
    (void)unlink(temporary.c_str());
    throw;
  }
}

RunFile read_run_file(const fs::path& directory) {
  const fs::path path = directory / kName;
  const Socket in(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!in) throw failed("open", path);
  struct stat status {};
  if (fstat(in.get(), &status) != 0) throw failed("fstat", path);
  if (status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
    throw Error(Code::permission_denied,
                path.string() + ": expected a file that belongs to this user and has mode 0600");
  }
  try {
    const auto json = parse_json(read_whole(in.get(), path), "its text", Code::data_loss);
    if (json.at("version") != kVersion) throw Error(Code::data_loss, "it is of another version of Capstan");
    if (!is_token(json.at("token"))) throw Error(Code::data_loss, "its token is malformed");
    return {json.at("host"),      json.at("pid"),
            json.at("address"),   from_hex(json.at("token").get<std::string>()),
            json.at("program"),   json.at("arguments").get<std::vector<std::string>>(),
            json.at("directory"), json.at("environment").get<std::map<std::string, std::string>>()};
  } catch (const nlohmann::json::exception& error) {
    throw Error(Code::data_loss, path.string() + ": " + error.what());
  } catch (const Error& error) {
    throw Error(error.code(), path.string() + ": " + error.what());
  }
}

void remove_run_file(const fs::path& directory, const std::string& host, std::int64_t pid) noexcept {
  try {
    const RunFile file = read_run_file(directory);
    if (file.host == host && file.pid == pid) (void)unlink((directory / kName).c_str());
  } catch (const std::exception&) {
    // The file does not exist, or is another job's.
  }
}

}  // namespace capstan::cluster
