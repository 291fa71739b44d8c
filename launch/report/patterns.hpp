// patterns.hpp -- recognizes addresses, logins and tokens by their form.
#pragma once

#include <cstddef>
#include <string_view>

namespace capstan::launch::report {

/// Each function returns the length of such a text at the start of `text`, or 0. The caller passes the start
/// of a word; the text ends at the end of a word.

/// IPv4 or IPv6 address, without a port. Returns 0 for the loopback and the unspecified address, which every
/// host has.
std::size_t address_length(std::string_view text);

/// Hardware address: six or more pairs of hexadecimal digits (Ethernet, IPoIB), or four groups of four (GUID
/// of InfiniBand).
std::size_t hardware_address_length(std::string_view text);

/// NAME@HOST, also an email address. The host starts with a letter, unlike the version in "ucx@1.15". The
/// name is more than digits, unlike the index of a rank in "worker 0@node7".
std::size_t login_length(std::string_view text);

/// Number of a user in the names that systemd and Slurm give to cgroups: "user-1234.slice", "user@1234",
/// "uid_1234", also in "uid=1234". `before` is the text up to the number. Returns 0 for root, whose number is
/// 0.
std::size_t user_id_length(std::string_view before, std::string_view text);

/// At least 32 hexadecimal digits, possibly with hyphens, as in secrets, keys and UUIDs.
std::size_t hex_token_length(std::string_view text);

/// NAME:PASSWORD@HOST in a URL, where the password may have slashes. `before` is the text up to the name.
std::size_t url_login_length(std::string_view before, std::string_view text);

/// At least 24 characters of base64 with lower-case and upper-case letters and digits. With `may_have_slash`,
/// also 40 characters with slashes: the text is not within an absolute path.
std::size_t base64_token_length(std::string_view text, bool may_have_slash = false);

/// A part of `text` that is a secret.
struct SecretPart {
  std::size_t begin = 0;
  std::size_t length = 0;  ///< 0: there is none
};
/// The value in "password=VALUE", "\"secret\": \"VALUE\"" or "Authorization: Bearer VALUE"; in quotes, up to
/// the second quote. With `is_option`, also in "token VALUE": the text follows two hyphens.
SecretPart assigned_secret(std::string_view text, bool is_option = false);

/// Returns true if a variable of this name holds a secret, such as AWS_SECRET_ACCESS_KEY.
bool is_secret_name(std::string_view name);

/// Returns true for ASCII letters and digits, which form words.
bool is_word_character(char character);

}  // namespace capstan::launch::report
