// document.cpp -- headings, the list at the end, and compression.
#include "launch/report/document.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include "capstan/error.hpp"
#include "capstan/version.hpp"

namespace capstan::launch::report {

void Document::add(std::string_view title, std::string_view text, std::string_view note) {
  add_anonymized(title, anonymizer_.anonymize(text), note);
}

void Document::add_anonymized(std::string_view title, std::string_view text, std::string_view note) {
  const std::string heading = anonymizer_.anonymize(title);
  const bool ends_line = text.empty() || text.back() == '\n';
  sections_ += fmt::format("== {}\n{}{}\n", heading, text, ends_line ? "" : "\n");
  list_ += fmt::format("{:<24} {} bytes{}{}\n", heading, text.size(), note.empty() ? "" : "; ", note);
}

std::string Document::text() const {
  std::string replaced;
  for (std::size_t i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    replaced +=
        fmt::format("{:<24} {}\n", fmt::format("{}-N", Anonymizer::label(kind)), anonymizer_.replaced(kind));
  }
  return fmt::format(
      "capstan report {}\n\n{}== contents of this file\n{}\n"
      "== replaced texts\n"
      "Number of different texts that each placeholder replaced. Equal texts have equal placeholders.\n{}\n"
      "Names that capstan report cannot know, such as those of projects and data sets, were not replaced.\n"
      "Read this file before you send it.\n",
      CAPSTAN_VERSION_STRING, sections_, list_, replaced);
}

std::string gzip(std::string_view text) {
  constexpr int kGzipWindow = 15 + 16;  // the largest window; 16 selects the format of gzip
  constexpr int kMemoryLevel = 8;       // the default
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw call_failed("deflateInit2", "no memory", Where::here(), Code::resource_exhausted);
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int answer = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  (void)deflateEnd(&stream);
  if (answer != Z_STREAM_END) throw call_failed("deflate", "incomplete output");
  return result;
}

}  // namespace capstan::launch::report
