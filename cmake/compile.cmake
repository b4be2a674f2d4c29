# How every target is compiled: the language, the warnings, the sanitizers, the fast linker and the compiler cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

add_compile_options(-Wall -Wextra -Wconversion -Werror)

if(HAPAX_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(HAPAX_SANITIZE STREQUAL "thread")
  # Asio's fences are beyond ThreadSanitizer, which GCC warns of; what they order is ordered by its locks, too.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan -Wno-unknown-warning-option)
  add_link_options(-fsanitize=thread)
elseif(HAPAX_SANITIZE)
  message(FATAL_ERROR "HAPAX_SANITIZE is '${HAPAX_SANITIZE}': it takes address or thread")
endif()

find_program(HAPAX_CCACHE ccache)
if(HAPAX_CCACHE)
  # Paths relative to the checkout, in the cache's keys and in the debug information: every clone and preset shares one
  # cache.
  set(HAPAX_CCACHE_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${HAPAX_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HAPAX_CCACHE_LAUNCHER})
  set(CMAKE_C_COMPILER_LAUNCHER ${HAPAX_CCACHE_LAUNCHER})
endif()
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

find_program(HAPAX_MOLD mold)
if(HAPAX_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# hapax_split_debug(TARGET): in a release, what is linked is code, and its debug information lies beside it in
# FILE.debug, where gdb finds it.
function(hapax_split_debug target)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_OBJCOPY} --only-keep-debug --compress-debug-sections $<TARGET_FILE:${target}>
            $<TARGET_FILE:${target}>.debug
    COMMAND ${CMAKE_OBJCOPY} --strip-debug --add-gnu-debuglink=$<TARGET_FILE:${target}>.debug $<TARGET_FILE:${target}>
    VERBATIM)
endfunction()

# hapax_library(NAME SOURCES... DEPENDS ...): one folder, one library. Headers are found from src/.
function(hapax_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
endfunction()

# The unit and conformance tests: what `./dev test --unit` builds and runs.
add_custom_target(unit_tests)

# hapax_test(NAME SOURCES... DEPENDS ... [SLOW] [UNIT]): a GoogleTest program, run by ctest as one test. SLOW puts it
# into the slow set, which `./dev test --slow` adds. UNIT puts it into the unit set; tests in src/ are in it anyway.
function(hapax_test name)
  if(NOT HAPAX_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SLOW;UNIT" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(ARG_SLOW)
    set_tests_properties(${name} PROPERTIES LABELS slow)
  elseif(ARG_UNIT OR CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/src/")
    set_tests_properties(${name} PROPERTIES LABELS unit)
    add_dependencies(unit_tests ${name})
  endif()
endfunction()
