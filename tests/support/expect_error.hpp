// expect_error.hpp -- checks that a call throws an Error with a given code.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "capstan/error.hpp"

namespace capstan {

/// Calls `call`, which must throw an Error with this code; returns the message.
template <class Call>
std::string error_of(Code code, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an Error: " << to_string(code);
  return "";
}

/// Returns the code of the Error that `call` throws; ok if it throws none.
template <class Call>
Code code_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Code::ok;
}

/// Checks the exact message. Use it once for each message; elsewhere, use expect_error_naming.
template <class Call>
void expect_error(Code code, const std::string& text, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "expected an Error: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(std::string(error.what()), text);
  }
}

/// Checks the code, and that the message contains each of `parameters`: a variable, a rank, a number, a path.
template <class Call>
void expect_error_naming(Code code, std::initializer_list<std::string> parameters, const Call& call) {
  const std::string message = error_of(code, call);
  for (const std::string& parameter : parameters) {
    EXPECT_NE(message.find(parameter), std::string::npos) << '"' << parameter << "\" is not in: " << message;
  }
}

}  // namespace capstan
