# capstan_layer(<layer> SOURCES ... [USES <lower layers>] [LINK <targets>] [PUBLIC_LINK <targets>] [NOT_IN_LIBRARY])
# Defines one static library for each layer, so an undeclared dependency is a link error; tests/check_layers.py rejects the
# include. cmake/CapstanLibrary.cmake builds libcapstan from the objects of all layers, except NOT_IN_LIBRARY ones. The
# objects are therefore position-independent, and symbols without CAPSTAN_API are hidden.

# A compiler cache cannot cache sources that use a precompiled header, and it saves more time than the header does.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
# capstan_headers(<name> OPTIONS ... HEADERS ... [LINK ...]): precompiles the headers that most sources of some targets
# include; those targets call target_precompile_headers(... REUSE_FROM <name>). They have the same compile options, and the
# definitions of fmt, which the headers depend on. FOR_LAYERS applies the properties of a layer.
set(CAPSTAN_LAYER_PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                             VISIBILITY_INLINES_HIDDEN ON)
function(capstan_headers name)
  cmake_parse_arguments(arg "FOR_LAYERS" "" "OPTIONS;HEADERS;LINK" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE ${CAPSTAN_WARNINGS} ${arg_OPTIONS})
  target_link_libraries(${name} PRIVATE fmt::fmt ${arg_LINK})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  if(arg_FOR_LAYERS)
    set_target_properties(${name} PROPERTIES ${CAPSTAN_LAYER_PROPERTIES})
  endif()
endfunction()

# Saves a fifth of the compile time of the layers.
capstan_headers(capstan_layer_headers FOR_LAYERS HEADERS <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint>
  <cstring> <exception> <filesystem> <fmt/format.h> <functional> <map> <memory> <mutex> <optional> <random> <ranges> <set> <span>
  <sstream> <stop_token> <string> <string_view> <system_error> <thread> <tuple> <unordered_map> <utility> <variant> <vector>)
# For programs that use the public headers only: benchmarks and the programs that tests start.
capstan_headers(capstan_program_headers HEADERS <capstan/capstan.hpp> <fmt/format.h>)

function(capstan_layer name)
  cmake_parse_arguments(arg "NOT_IN_LIBRARY" "" "SOURCES;USES;LINK;PUBLIC_LINK" ${ARGN})
  add_library(capstan_${name} STATIC ${arg_SOURCES})
  # CAPSTAN_LINKS: see cmake/CapstanLibrary.cmake.
  set_target_properties(capstan_${name} PROPERTIES ${CAPSTAN_LAYER_PROPERTIES} INTERFACE_CAPSTAN_LINKS "single layers"
                                                   COMPATIBLE_INTERFACE_STRING CAPSTAN_LINKS)
  target_compile_features(capstan_${name} PUBLIC cxx_std_20)
  target_include_directories(capstan_${name}
    PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_compile_options(capstan_${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${CAPSTAN_WARNINGS}>")
  target_precompile_headers(capstan_${name} REUSE_FROM capstan_layer_headers)
  list(TRANSFORM arg_USES PREPEND capstan_)
  target_link_libraries(capstan_${name} PUBLIC ${arg_USES} ${arg_PUBLIC_LINK} PRIVATE ${arg_LINK})
  if(NOT arg_NOT_IN_LIBRARY)
    set_property(GLOBAL APPEND PROPERTY CAPSTAN_LIBRARY_LAYERS capstan_${name})
  endif()
endfunction()
