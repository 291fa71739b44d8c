// slurm_lists.cpp -- a scanner, and a function for each rule of the two formats.
#include "cluster/resolvers/slurm_lists.hpp"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

#include "capstan/error.hpp"

namespace capstan::cluster {
namespace {

constexpr std::size_t kMaxHosts = 65'536;  // Slurm supports no more nodes
constexpr std::size_t kMaxShown = 80;      // characters of a value in an error
constexpr std::size_t kMaxDigits = 9;      // of a number; its value fits in an int

class Scanner {
 public:
  Scanner(const std::string& variable, std::string_view text) : variable_(variable), text_(text) {}

  bool at_end() const noexcept { return position_ == text_.size(); }
  char next() const noexcept { return at_end() ? '\0' : text_[position_]; }
  std::size_t position() const noexcept { return position_; }

  bool take(char wanted) noexcept {
    if (at_end() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }

  void expect(std::string_view wanted, std::string_view expected) {
    for (const char c : wanted) {
      if (!take(c)) throw wrong(expected);
    }
  }

  template <class Is>
  std::string_view take_while(const Is& is) noexcept {
    const std::size_t begin = position_;
    while (!at_end() && is(static_cast<unsigned char>(text_[position_]))) ++position_;
    return text_.substr(begin, position_ - begin);
  }

  std::string_view digits(std::string_view expected) {
    const std::size_t begin = position_;
    const std::string_view found = take_while([](unsigned char c) { return std::isdigit(c) != 0; });
    if (found.empty()) throw wrong(expected);
    if (found.size() > kMaxDigits) throw wrong_at(begin, fmt::format("at most {} digits", kMaxDigits));
    return found;
  }

  Error wrong(std::string_view expected) const { return wrong_at(position_, expected); }
  Error wrong_at(std::size_t position, std::string_view expected) const {
    const std::string shown(text_.substr(0, kMaxShown));
    const std::string found = position == text_.size() ? "it ends" : fmt::format("'{}'", text_[position]);
    return Error(Code::invalid_argument,
                 fmt::format("{}=\"{}{}\": at character {} {}; expected {}", variable_, shown,
                             text_.size() > kMaxShown ? "..." : "", position + 1, found, expected));
  }

 private:
  const std::string& variable_;
  std::string_view text_;
  std::size_t position_ = 0;
};

int number_of(std::string_view digits) { return std::stoi(std::string(digits)); }

bool is_padded(std::string_view digits) { return digits.size() > 1 && digits[0] == '0'; }

bool in_name(unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; }

/// "3", "3-7" or "08-10", each number as text.
void take_range(Scanner& scanner, std::vector<std::string>& numbers) {
  const std::string_view first = scanner.digits("a number");
  if (!scanner.take('-')) {
    numbers.emplace_back(first);
    return;
  }
  const std::size_t begin = scanner.position();
  const std::string_view last = scanner.digits("the last number of the range");
  if (number_of(last) < number_of(first)) {
    throw scanner.wrong_at(begin, fmt::format("a number that is not below {}", first));
  }
  if (is_padded(last) && last.size() != first.size()) {
    throw scanner.wrong_at(begin, fmt::format("as many digits as in {}", first));
  }
  if (numbers.size() + static_cast<std::size_t>(number_of(last) - number_of(first)) >= kMaxHosts) {
    throw scanner.wrong_at(begin, fmt::format("at most {} numbers in all", kMaxHosts));
  }
  for (int number = number_of(first); number <= number_of(last); ++number) {
    numbers.push_back(fmt::format("{:0{}}", number, first.size()));
  }
}

/// The numbers between '[' and ']'.
std::vector<std::string> take_bracket(Scanner& scanner) {
  std::vector<std::string> numbers;
  do {
    take_range(scanner, numbers);
  } while (scanner.take(','));
  if (!scanner.take(']')) throw scanner.wrong("',', '-' or ']'");
  return numbers;
}

std::vector<std::string> each_with_each(const std::vector<std::string>& heads,
                                        const std::vector<std::string>& tails) {
  std::vector<std::string> all;
  for (const std::string& head : heads) {
    for (const std::string& tail : tails) all.push_back(head + tail);
  }
  return all;
}

/// "m5" or "rack[0-1]n[1-3]-ib".
std::vector<std::string> take_hosts(Scanner& scanner) {
  const std::size_t begin = scanner.position();
  std::vector<std::string> hosts{""};
  while (true) {
    std::vector<std::string> tails;
    if (scanner.take('[')) {
      tails = take_bracket(scanner);
    } else if (const std::string_view name = scanner.take_while(in_name); !name.empty()) {
      tails.emplace_back(name);
    } else {
      break;
    }
    if (hosts.size() * tails.size() > kMaxHosts) {
      throw scanner.wrong_at(begin, fmt::format("at most {} hosts", kMaxHosts));
    }
    hosts = each_with_each(hosts, tails);
  }
  if (scanner.position() == begin) throw scanner.wrong("a host's name");
  return hosts;
}

/// "2" or "3(x2)".
void take_counts(Scanner& scanner, std::vector<int>& counts) {
  const std::size_t begin = scanner.position();
  const int tasks = number_of(scanner.digits("a number of tasks"));
  if (tasks == 0) throw scanner.wrong_at(begin, "at least one task");
  std::size_t times = 1;
  if (scanner.take('(')) {
    scanner.expect("x", "\"x\" and a number of hosts");
    const std::size_t at = scanner.position();
    times = static_cast<std::size_t>(number_of(scanner.digits("a number of hosts")));
    if (times == 0 || times > kMaxHosts) {
      throw scanner.wrong_at(at, fmt::format("a number of hosts from 1 to {}", kMaxHosts));
    }
    scanner.expect(")", "')'");
  }
  counts.insert(counts.end(), times, tasks);
}

}  // namespace

std::vector<std::string> expand_hosts(const std::string& variable, const std::string& text) {
  Scanner scanner(variable, text);
  std::vector<std::string> all;
  do {
    const std::size_t begin = scanner.position();
    const std::vector<std::string> hosts = take_hosts(scanner);
    all.insert(all.end(), hosts.begin(), hosts.end());
    if (all.size() > kMaxHosts) throw scanner.wrong_at(begin, fmt::format("at most {} hosts", kMaxHosts));
  } while (scanner.take(','));
  if (!scanner.at_end()) throw scanner.wrong("',' or '[' or the end");
  return all;
}

std::vector<int> expand_counts(const std::string& variable, const std::string& text) {
  Scanner scanner(variable, text);
  std::vector<int> all;
  do {
    const std::size_t begin = scanner.position();
    take_counts(scanner, all);
    if (all.size() > kMaxHosts) throw scanner.wrong_at(begin, fmt::format("at most {} hosts", kMaxHosts));
  } while (scanner.take(','));
  if (!scanner.at_end()) throw scanner.wrong("',' or \"(x\" or the end");
  return all;
}

int count_numbers(const std::string& variable, const std::string& text) {
  Scanner scanner(variable, text);
  std::vector<std::string> numbers;
  do {
    take_range(scanner, numbers);
  } while (scanner.take(','));
  if (!scanner.at_end()) throw scanner.wrong("',' or '-' or the end");
  return static_cast<int>(numbers.size());
}

}  // namespace capstan::cluster
