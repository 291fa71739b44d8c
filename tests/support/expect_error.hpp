// expect_error.hpp -- a call that must throw an Error with just this code and this text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "capstan/error.hpp"

namespace capstan {

/// The text of the Error with this code that the call must throw.
template <class Call>
std::string error_of(Code code, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an error: " << to_string(code);
  return "";
}

template <class Call>
void expect_error(Code code, const std::string& text, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(std::string(error.what()), text);
  }
}

}  // namespace capstan
