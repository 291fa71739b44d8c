# One step of the install test: cmake -DSTEP=... -DKIND=shared|static ... -P run_step.cmake
#   install       installs the library of that kind into its own prefix
#   find_package  builds and runs an outside project, with CMake
#   pkg_config    builds and runs an outside program, with the command of docs/howto/build_your_program.md
#   components    expects find_package to reject components that are not available
#   exports       checks the symbols that libcapstan.so exports
function(run)
  list(JOIN ARGV " " words)
  message("+ ${words}")
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# build_outside(<directory> <languages> <package> <components>): configures and builds the outside project, and runs its program.
function(build_outside directory languages package components)
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${directory} -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${PREFIX}
      -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DOUTSIDE_LANGUAGES=${languages}
      -DOUTSIDE_PACKAGE=${package} -DOUTSIDE_VERSION=${VERSION} "-DOUTSIDE_COMPONENTS=${components}")
  run(${CMAKE_COMMAND} --build ${directory})
  run(${directory}/outside)
endfunction()

# The program may contain its template instances, but not the library.
function(require_small program)
  run(${STRIP} -o ${program}.stripped ${program})
  file(SIZE ${program}.stripped bytes)
  message("${program}, stripped: ${bytes} bytes")
  if(bytes GREATER_EQUAL 1000000)
    message(FATAL_ERROR "a program that links the shared library has ${bytes} bytes, expected less than 1 MB")
  endif()
endfunction()

# find_package with these components must fail with an error that matches the pattern.
function(require_refusal components pattern)
  execute_process(COMMAND ${CMAKE_COMMAND} -DDIRECTORY=${PREFIX}/${LIBDIR}/cmake/capstan "-DCOMPONENTS=${components}"
                          -P ${SOURCE}/components.cmake
                  RESULT_VARIABLE failed ERROR_VARIABLE reason)
  string(REGEX REPLACE "[ \n]+" " " reason "${reason}")
  message("COMPONENTS ${components}: ${reason}")
  if(failed EQUAL 0 OR NOT reason MATCHES "${pattern}")
    message(FATAL_ERROR "find_package(Capstan COMPONENTS ${components}): expected an error that matches '${pattern}'")
  endif()
endfunction()

if(STEP STREQUAL "install")
  file(REMOVE_RECURSE ${PREFIX} ${SCRATCH})
  if(KIND STREQUAL "shared" OR NOT SHARED)
    run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
  else()
    foreach(component development static)
      run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX} --component capstan_${component})
    endforeach()
  endif()
  if(EXISTS ${PREFIX}/bin/capstan)
    run(${PREFIX}/bin/capstan --version)
    foreach(file man/man1/capstan-train-kge.1 bash-completion/completions/capstan zsh/site-functions/_capstan
                 fish/vendor_completions.d/capstan.fish doc/capstan/README.md modulefiles/capstan/${VERSION})
      if(NOT EXISTS ${PREFIX}/share/${file})
        message(FATAL_ERROR "the installation lacks share/${file}")
      endif()
    endforeach()
  endif()

elseif(STEP STREQUAL "find_package")
  # A project with C++ only is harder, since MPI and HDF5 are C libraries. Each build uses one spelling of the name.
  if(KIND STREQUAL "shared")
    build_outside(${SCRATCH}/CXX CXX Capstan "shared;mpi")
    build_outside(${SCRATCH}/C_CXX "C CXX" capstan "")
    require_small(${SCRATCH}/CXX/outside)
  else()
    build_outside(${SCRATCH}/static CXX Capstan static)
  endif()

elseif(STEP STREQUAL "pkg_config")
  file(MAKE_DIRECTORY ${SCRATCH})
  set(ENV{PKG_CONFIG_PATH} "${PREFIX}/${LIBDIR}/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  set(module capstan)
  if(KIND STREQUAL "static" AND SHARED)
    set(module capstan-static)
  endif()
  run(${PKG_CONFIG} --exact-version=${VERSION} ${module})
  # The command of docs/howto/build_your_program.md, with this compiler and these files.
  file(STRINGS ${PAGE} command REGEX "^c\\+\\+ program\\.cpp .*pkg-config")
  set(program ${SCRATCH}/outside_pkg_config)
  # With the static library, links the object that find_package has compiled.
  set(file ${SOURCE}/main.cpp)
  if(KIND STREQUAL "static")
    set(file ${SCRATCH}/static/CMakeFiles/outside.dir/main.cpp.o)
  endif()
  string(REPLACE "c++ program.cpp" "${CXX} ${CXX_FLAGS} ${file}" command "${command}")
  string(REPLACE "$(pkg-config" "$(${PKG_CONFIG}" command "${command}")
  string(REGEX REPLACE " capstan\\)" " ${module})" command "${command}")
  string(REPLACE "-o program" "-o ${program}" command "${command}")
  run(sh -c "${command}")
  run(${program})
  if(KIND STREQUAL "shared")
    require_small(${program})
  endif()

elseif(STEP STREQUAL "components")
  require_refusal("gpus" "component 'gpus': Capstan has no such component; its components are shared, static, mpi and gpu")
  if(KIND STREQUAL "shared")
    require_refusal("static" "component 'static': no static library is installed in ")
  else()
    require_refusal("shared" "component 'shared': no shared library is installed in ")
  endif()
  if(NOT GPU)
    require_refusal("gpu" "component 'gpu': the installation in .* was built without CUDA")
  endif()

elseif(STEP STREQUAL "exports")
  run(${PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_exports.py ${NM} ${PREFIX}/${LIBDIR}/libcapstan.so)

else()
  message(FATAL_ERROR "unknown step '${STEP}', expected install, find_package, pkg_config, components or exports")
endif()
