// export.hpp -- CAPSTAN_API marks the functions and classes that libcapstan.so exports.
//
// Capstan is compiled with hidden visibility, so a program can link only to marked declarations. The static
// library is built from the same objects and needs no other definition of the macro.
#pragma once

#define CAPSTAN_API __attribute__((visibility("default")))
