# capstan_layer(<layer> SOURCES ... [USES <lower layers>] [LINK <targets>] [PUBLIC_LINK <targets>])
# One static library per layer: a dependency that was not declared is a link error, and tests/check_layers.py
# refuses the include.

# A compiler cache would know nothing of what includes a precompiled header, and saves more.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
# capstan_headers(<name> OPTIONS ... HEADERS ... [LINK ...]): what most files of some targets include, made once, for their
# target_precompile_headers(... REUSE_FROM <name>). They have the same options, and fmt's definitions, which the headers
# read; none of their other definitions.
function(capstan_headers name)
  cmake_parse_arguments(arg "" "" "OPTIONS;HEADERS;LINK" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE ${CAPSTAN_WARNINGS} ${arg_OPTIONS})
  target_link_libraries(${name} PRIVATE fmt::fmt ${arg_LINK})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

# A fifth of what layers take to compile.
capstan_headers(capstan_layer_headers OPTIONS -fPIC HEADERS <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint>
  <cstring> <exception> <filesystem> <fmt/format.h> <functional> <map> <memory> <mutex> <optional> <random> <ranges> <set> <span>
  <sstream> <stop_token> <string> <string_view> <system_error> <thread> <tuple> <unordered_map> <utility> <variant> <vector>)
# Of programs on the public headers: benchmarks, and those that tests start.
capstan_headers(capstan_program_headers HEADERS <capstan/capstan.hpp> <fmt/format.h>)

function(capstan_layer name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;LINK;PUBLIC_LINK" ${ARGN})
  add_library(capstan_${name} STATIC ${arg_SOURCES})
  add_library(capstan::${name} ALIAS capstan_${name})
  set_target_properties(capstan_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(capstan_${name} PUBLIC cxx_std_20)
  target_include_directories(capstan_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_compile_options(capstan_${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${CAPSTAN_WARNINGS}>")
  target_precompile_headers(capstan_${name} REUSE_FROM capstan_layer_headers)
  list(TRANSFORM arg_USES PREPEND capstan_)
  target_link_libraries(capstan_${name} PUBLIC ${arg_USES} ${arg_PUBLIC_LINK} PRIVATE ${arg_LINK})
  set_property(GLOBAL APPEND PROPERTY CAPSTAN_LAYERS capstan_${name})
endfunction()
