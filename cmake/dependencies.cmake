# Everything Hapax stands on, all from Debian 12. Each folder links only what it uses.
find_package(Boost 1.81 REQUIRED COMPONENTS context json url)
find_package(OpenSSL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CURL REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(date REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)

# CMake's own module for PostgreSQL asks for the headers of the server, too.
find_path(LIBPQ_INCLUDE_DIR libpq-fe.h PATH_SUFFIXES postgresql REQUIRED)
find_library(LIBPQ_LIBRARY pq REQUIRED)
add_library(libpq::pq UNKNOWN IMPORTED)
set_target_properties(libpq::pq PROPERTIES
  IMPORTED_LOCATION "${LIBPQ_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${LIBPQ_INCLUDE_DIR}")

# Boost's headers are compiled with our warnings off: they are not ours to fix.
set_target_properties(Boost::headers PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${Boost_INCLUDE_DIRS}")

hapax_precompiled(hapax_precompiled_std HEADERS ${HAPAX_PRECOMPILED_HEADERS} DEPENDS fmt::fmt)

if(HAPAX_TESTS)
  find_package(GTest REQUIRED)
  hapax_precompiled(hapax_precompiled_gtest
    HEADERS ${HAPAX_PRECOMPILED_HEADERS} <gmock/gmock.h> <gtest/gtest.h> DEPENDS fmt::fmt GTest::gmock)
endif()
