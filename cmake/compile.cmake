# How every target is compiled: the language, the warnings, the sanitizers, the fast linker and the compiler cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

add_compile_options(-Wall -Wextra -Wconversion)
if(HAPAX_TESTS)  # a release is built by whatever compiler there is, whatever that warns of
  add_compile_options(-Werror)
endif()

if(HAPAX_SANITIZE STREQUAL "address")
  # Instrumented code hides from GCC 12 that a variant's member was written: it warns where nothing is wrong.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
    -Wno-maybe-uninitialized)
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
  set(HAPAX_CCACHE_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  if(HAPAX_PRECOMPILE)
    # Without this ccache does not cache what uses a precompiled header.
    list(APPEND HAPAX_CCACHE_LAUNCHER CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
  list(APPEND HAPAX_CCACHE_LAUNCHER ${HAPAX_CCACHE})
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

# Two precompiled headers serve all targets: what most sources include, and for tests GoogleTest, too. Only system
# headers: one of ours would rebuild everything when it changes, and its path would keep clones from sharing the
# compiler cache. Not with clang, whose precompiled headers have paths in them.
if(HAPAX_PRECOMPILE AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(HAPAX_PRECOMPILE OFF)
endif()
if(HAPAX_PRECOMPILE)
  # GCC takes a precompiled header only where these are as they were when it was made.
  set(CMAKE_CXX_COMPILE_OPTIONS_PIE ${CMAKE_CXX_COMPILE_OPTIONS_PIC})
  add_compile_definitions(FMT_SHARED)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # for ccache
endif()
set(HAPAX_PRECOMPILED_HEADERS <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <deque> <functional>
  <map> <memory> <mutex> <optional> <ostream> <set> <span> <stdexcept> <string> <string_view> <thread> <utility>
  <variant> <vector> <fmt/format.h>)

# hapax_precompiled(NAME HEADERS... DEPENDS ...): a target that has nothing but a precompiled header, for others to use.
function(hapax_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS" ${ARGN})
  if(NOT HAPAX_PRECOMPILE)
    return()
  endif()
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# hapax_use_precompiled(TARGET NAME): compiles TARGET with the header of NAME.
function(hapax_use_precompiled target name)
  if(HAPAX_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# hapax_library(NAME SOURCES... DEPENDS ...): one folder, one library. Headers are found from src/.
function(hapax_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  hapax_use_precompiled(${name} hapax_precompiled_std)
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
  hapax_use_precompiled(${name} hapax_precompiled_gtest)
  add_test(NAME ${name} COMMAND ${name})
  if(ARG_SLOW)
    set_tests_properties(${name} PROPERTIES LABELS slow)
  elseif(ARG_UNIT OR CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/src/")
    set_tests_properties(${name} PROPERTIES LABELS unit)
    add_dependencies(unit_tests ${name})
  endif()
endfunction()
