// expect_error.hpp -- a call that must throw an Error with just this code and this text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "capstan/error.hpp"

namespace capstan {

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
