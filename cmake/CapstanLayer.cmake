# capstan_layer(<layer> SOURCES ... [USES <lower layers>] [LINK <targets>] [PUBLIC_LINK <targets>])
# One static library per layer: a dependency that was not declared is a link error, and tests/check_layers.py
# refuses the include.

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
  list(TRANSFORM arg_USES PREPEND capstan_)
  target_link_libraries(capstan_${name} PUBLIC ${arg_USES} ${arg_PUBLIC_LINK} PRIVATE ${arg_LINK})
  set_property(GLOBAL APPEND PROPERTY CAPSTAN_LAYERS capstan_${name})
endfunction()
