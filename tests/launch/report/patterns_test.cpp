// patterns_test.cpp -- addresses, logins and tokens, and texts that are similar to them.
#include "launch/report/patterns.hpp"

#include <gtest/gtest.h>

#include <string>

namespace capstan::launch::report {
namespace {

TEST(ReportPatterns, RecognizeAddresses) {
  for (const std::string address :
       {"10.1.2.3", "192.168.100.255", "fe80::1", "2001:db8:0:1:2:3:4:5", "::ffff:10.1.2.3", "fe80::"}) {
    EXPECT_EQ(address_length(address), address.size()) << address;
    EXPECT_EQ(address_length(address + " is up"), address.size()) << address;
    EXPECT_EQ(address_length(address + "/24"), address.size()) << address;
  }
  EXPECT_EQ(address_length("10.1.2.3:8080"), 8U);
  EXPECT_EQ(address_length("10.1.2.3. Next"), 8U);
}

TEST(ReportPatterns, DoNotTakeVersionsAndTimesForAddresses) {
  for (const char* text :
       {"4.1.4", "1.13.1", "10.1.2.3.4", "10.1.2.256", "12:34:56", "127.0.0.1", "0.0.0.0", "::1",
        "::", "0::/init", "a::launch", "std::string", "0000:3b:00.0", "1.2.3.4a", ""}) {
    EXPECT_EQ(address_length(text), 0U) << text;
  }
}

TEST(ReportPatterns, RecognizeHardwareAddresses) {
  for (const std::string address : {"0c:42:a1:00:11:ff", "0C-42-A1-00-11-FF", "506b:4b03:0012:3456",
                                    "80:00:00:66:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:12:34:56"}) {
    EXPECT_EQ(hardware_address_length(address + " up"), address.size()) << address;
  }
  for (const char* text : {"12:34:56", "2026-11-30", "0000:3b:00.0", "0c:42:a1:00:11:fg", ""}) {
    EXPECT_EQ(hardware_address_length(text), 0U) << text;
  }
}

TEST(ReportPatterns, RecognizeLogins) {
  EXPECT_EQ(login_length("ada.king@login1 said"), 15U);
  EXPECT_EQ(login_length("ada@example.org."), 15U);
  for (const char* text : {"ucx@1.15.0", "0@vm", "@example", "ada", "ada@", ""})
    EXPECT_EQ(login_length(text), 0U) << text;
}

TEST(ReportPatterns, RecognizeLoginsInUrls) {
  EXPECT_EQ(url_login_length("https://", "ada:pa/ss@example.org/x"), 21U);
  EXPECT_EQ(url_login_length("https://", "example.org/x ada:b@c"), 0U);
  EXPECT_EQ(url_login_length("https:/", "ada:pa/ss@example.org"), 0U);
}

TEST(ReportPatterns, RecognizeTokens) {
  const std::string digits = "00112233445566778899aabbccddeeff";
  EXPECT_EQ(hex_token_length(digits), 32U);
  EXPECT_EQ(hex_token_length(digits + digits + " x"), 64U);
  EXPECT_EQ(hex_token_length("00112233-4455-6677-8899-aabbccddeeff"), 36U);
  EXPECT_EQ(hex_token_length(digits.substr(1)), 0U);
  EXPECT_EQ(hex_token_length("--------------------------------------"), 0U);
  EXPECT_EQ(base64_token_length("eyJhbGciOiJIUzI1NiIsInR5"), 24U);
  EXPECT_EQ(base64_token_length("eyJhbGciOiJIUzI1NiIsInR"), 0U);
  EXPECT_EQ(base64_token_length("wJalrXUtnFEMI/K7MDENG/bPxRfiCYplantedKEY", true), 40U);
  EXPECT_EQ(base64_token_length("wJalrXUtnFEMI/K7MDENG/bPxRfiCYplantedKEY", false), 0U);
  EXPECT_EQ(base64_token_length("share/Modules/OpenMPI4/lib64", true), 0U);
  EXPECT_EQ(base64_token_length("a_long_name_of_a_variable_2"), 0U);
}

std::string secret_in(const std::string& text, bool is_option = false) {
  const SecretPart part = assigned_secret(text, is_option);
  return text.substr(part.begin, part.length);
}

TEST(ReportPatterns, FindAssignedSecrets) {
  EXPECT_EQ(secret_in("password=hunter2 next"), "hunter2");
  EXPECT_EQ(secret_in(R"(job_token": "abc", "next": 1)"), "abc");
  EXPECT_EQ(secret_in("API-KEY: xyz"), "xyz");
  EXPECT_EQ(secret_in("token abc", true), "abc");
  EXPECT_EQ(secret_in("token abc"), "");
  EXPECT_EQ(secret_in("keys: 100"), "");
  EXPECT_EQ(secret_in("password=\"correct horse\" next"), "correct horse");
  EXPECT_EQ(secret_in("password \"correct horse\" next", true), "correct horse");
  EXPECT_EQ(secret_in(R"(password="a\"b c" next)"), R"(a\"b c)");
  EXPECT_EQ(secret_in(R"(password\": \"a b\", \"next\": 1)"), "a b");
  EXPECT_EQ(secret_in("password='it is open\nnext'"), "it is open");
  EXPECT_EQ(secret_in("password=\"\" next"), "");
  EXPECT_EQ(secret_in("Password=ab/cd+e next"), "ab/cd+e");
  EXPECT_EQ(secret_in("Authorization: Bearer ab.cd-e\nnext"), "Bearer ab.cd-e");
  EXPECT_EQ(secret_in("Bearer abcdefgh.ijkl/mnop= next"), "abcdefgh.ijkl/mnop=");
  EXPECT_EQ(secret_in("bearer of news"), "");
}

TEST(ReportPatterns, TellNamesOfSecretsFromOthers) {
  EXPECT_TRUE(is_secret_name("AWS_SECRET_ACCESS_KEY"));
  EXPECT_TRUE(is_secret_name("CAPSTAN_JOB_TOKEN"));
  EXPECT_TRUE(is_secret_name("SITE_SESSION_ID"));
  EXPECT_FALSE(is_secret_name("DESKTOP_SESSION"));
  EXPECT_FALSE(is_secret_name("UCX_TLS"));
}

}  // namespace
}  // namespace capstan::launch::report
