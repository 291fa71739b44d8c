// command_page.cpp -- texts that all renderers share.
#include "launch/help/command_page.hpp"

#include <cctype>

namespace capstan::launch::help {

std::string names_with_value(const OptionHelp& option) {
  std::string text;
  for (const std::string& name : option.names) {
    if (!text.empty()) text += ", ";
    text += option.negatable ? "--[no-]" + name.substr(2) : name;
  }
  if (!option.value.empty()) text += " " + option.value;
  return text;
}

std::string text_with_default(const OptionHelp& option) {
  return option.default_value.empty() ? option.text
                                      : option.text + " (default: " + option.default_value + ")";
}

std::string sentence(const std::string& phrase) {
  std::string text = phrase;
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + ".";
}

}  // namespace capstan::launch::help
