// document.hpp -- the text of a report: anonymized sections, and a list of them at the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/report/anonymizer.hpp"

namespace capstan::launch::report {

/// One thread at a time.
class Document {
 public:
  /// Adds all names to `anonymizer` before the first section: a name that is added later stays in earlier
  /// sections.
  explicit Document(Anonymizer& anonymizer) : anonymizer_(anonymizer) {}

  /// Anonymizes and appends `text` under a heading. The note is for the list of sections.
  void add(std::string_view title, std::string_view text, std::string_view note = {});
  /// Appends text that is already anonymized.
  void add_anonymized(std::string_view title, std::string_view text, std::string_view note = {});

  /// The sections, the list of sections, and the numbers of replaced names.
  std::string text() const;

 private:
  Anonymizer& anonymizer_;
  std::string sections_;
  std::string list_;
};

/// `text` in gzip format. Throws Error(resource_exhausted).
std::string gzip(std::string_view text);

}  // namespace capstan::launch::report
