# Sets CAPSTAN_COMMIT to the abbreviated hash of HEAD. In a release archive, it comes from commit.txt, into which `git archive`
# has written it. In any other directory outside of a Git work tree, it is "unknown".
set(commit unknown)
find_package(Git QUIET)
if(Git_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(commit ${head})
  endif()
  # Git appends to this log on every commit and checkout, so CMake reconfigures and the hash stays current.
  if(EXISTS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
  endif()
else()
  file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/commit.txt head LIMIT_COUNT 1)
  if(head MATCHES "^[0-9a-f]+$")
    string(SUBSTRING ${head} 0 12 commit)
  endif()
endif()
set(CAPSTAN_COMMIT ${commit})
