// main.cpp -- the smallest program that needs Capstan's headers and its libraries.
#include <capstan/error.hpp>

#include <cstdio>

int main() {
  const capstan::Error error = capstan::call_failed("outside", "as expected");
  std::printf("%s\n", error.what());
  return error.code() == capstan::Code::internal ? 0 : 1;
}
