# What is installed: the program, the library for outside programs, and what a system needs to run a server.
#
#   cmake --install BUILD --prefix DIR      program, libhapax, headers, CMake and pkg-config files, systemd unit
#   cmake --install BUILD --component system    /etc/hapax/hapax.toml, wherever the rest went; the .deb has it
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# libhapax: everything behind include/hapax, for C++ and for C, in one shared library that shows its public names and
# nothing else. The tests under sanitizers link the static libraries instead.
if(HAPAX_SANITIZE)
  add_library(hapax::hapax ALIAS hapax_sdk)
  add_library(hapax::capi ALIAS hapax_capi)
  return()
endif()

set(HAPAX_EXPORTS ${PROJECT_SOURCE_DIR}/packaging/libhapax.map)
add_library(hapax_shared SHARED $<TARGET_OBJECTS:hapax_sdk> $<TARGET_OBJECTS:hapax_capi>)
add_library(hapax::hapax ALIAS hapax_shared)
add_library(hapax::capi ALIAS hapax_shared)
set_target_properties(hapax_shared PROPERTIES
  OUTPUT_NAME hapax
  EXPORT_NAME hapax
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${HAPAX_EXPORTS})
hapax_split_debug(hapax_shared)
target_compile_features(hapax_shared INTERFACE cxx_std_20)
target_include_directories(hapax_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(hapax_shared PRIVATE hapax_capi hapax_sdk INTERFACE Boost::headers Boost::json)
target_link_options(hapax_shared PRIVATE
  LINKER:--version-script=${HAPAX_EXPORTS} LINKER:--no-undefined LINKER:--as-needed)

# libhapax_capi: the functions of hapax/capi.h and no other name, for the wheel of another language. It is not
# installed: libhapax has them, too.
set(HAPAX_CAPI_EXPORTS ${PROJECT_SOURCE_DIR}/packaging/libhapax_capi.map)
add_library(hapax_capi_shared SHARED $<TARGET_OBJECTS:hapax_capi>)
set_target_properties(hapax_capi_shared PROPERTIES
  OUTPUT_NAME hapax_capi
  VERSION ${PROJECT_VERSION}
  SOVERSION 1
  LINK_DEPENDS ${HAPAX_CAPI_EXPORTS})
hapax_split_debug(hapax_capi_shared)
target_link_libraries(hapax_capi_shared PRIVATE hapax_capi)
target_link_options(hapax_capi_shared PRIVATE
  LINKER:--version-script=${HAPAX_CAPI_EXPORTS} LINKER:--exclude-libs,ALL LINKER:--no-undefined LINKER:--as-needed)

# What is installed is stripped. The symbols of a release lie apart, where gdb looks for those of what is installed in
# /usr: `cmake --install BUILD --component symbols`; `./dev package` makes a package of them.
install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)")
install(TARGETS hapax RUNTIME)
install(TARGETS hapax_shared EXPORT hapax LIBRARY)
install(DIRECTORY include/hapax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(HAPAX_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/hapax)
install(EXPORT hapax NAMESPACE hapax:: FILE hapaxTargets.cmake DESTINATION ${HAPAX_CMAKE_DIR})
configure_package_config_file(packaging/hapaxConfig.cmake.in ${PROJECT_BINARY_DIR}/hapaxConfig.cmake
  INSTALL_DESTINATION ${HAPAX_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
# While the major version is 0, a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hapaxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hapaxConfig.cmake ${PROJECT_BINARY_DIR}/hapaxConfigVersion.cmake
  DESTINATION ${HAPAX_CMAKE_DIR})
file(RELATIVE_PATH HAPAX_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(packaging/hapax.pc.in ${PROJECT_BINARY_DIR}/hapax.pc @ONLY)
configure_file(packaging/hapax_capi.pc.in ${PROJECT_BINARY_DIR}/hapax_capi.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hapax.pc ${PROJECT_BINARY_DIR}/hapax_capi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Each shell's completion, where Debian's shells look for those of packages.
foreach(completion bash:share/bash-completion/completions:hapax zsh:share/zsh/vendor-completions:_hapax
    fish:share/fish/vendor_completions.d:hapax.fish)
  string(REPLACE ":" ";" completion ${completion})
  list(GET completion 0 shell)
  list(GET completion 1 folder)
  list(GET completion 2 name)
  set(script ${PROJECT_BINARY_DIR}/completion/${shell})
  add_custom_command(OUTPUT ${script} DEPENDS hapax VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/completion
    COMMAND hapax completion ${shell} > ${script})
  list(APPEND HAPAX_COMPLETIONS ${script})
  install(FILES ${script} DESTINATION ${folder} RENAME ${name})
endforeach()
add_custom_target(hapax_completions ALL DEPENDS ${HAPAX_COMPLETIONS})

if(CMAKE_BUILD_TYPE STREQUAL "Release")
  install(FILES $<TARGET_FILE:hapax>.debug DESTINATION lib/debug/usr/${CMAKE_INSTALL_BINDIR}
    COMPONENT symbols EXCLUDE_FROM_ALL)
  install(FILES $<TARGET_FILE:hapax_shared>.debug DESTINATION lib/debug/usr/${CMAKE_INSTALL_LIBDIR}
    COMPONENT symbols EXCLUDE_FROM_ALL)
endif()

install(FILES packaging/hapax.service DESTINATION lib/systemd/system)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN "adr" EXCLUDE)
install(FILES packaging/hapax.toml DESTINATION /etc/hapax PERMISSIONS OWNER_READ OWNER_WRITE
  COMPONENT system EXCLUDE_FROM_ALL)

# The .deb: `./dev package`.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hapax)
set(CPACK_PACKAGE_VENDOR Hapax)
set(CPACK_PACKAGE_CONTACT "The Hapax authors <hapax@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Durable task queue: say it twice, it happens once")
set(CPACK_PACKAGE_DESCRIPTION "A durable task queue in which idempotency is the product. This package has the server and
command line program, the C++ library libhapax with its headers, and a systemd unit that serves on 127.0.0.1:7373.")
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${PROJECT_BINARY_DIR};hapax;ALL;/" "${PROJECT_BINARY_DIR};hapax;system;/")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.54~), tzdata")
# What programs that use the headers are compiled with.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libboost1.81-dev, libboost-json1.81-dev")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/packaging/debian/conffiles
  ${PROJECT_SOURCE_DIR}/packaging/debian/postinst
  ${PROJECT_SOURCE_DIR}/packaging/debian/prerm
  ${PROJECT_SOURCE_DIR}/packaging/debian/postrm
  ${PROJECT_SOURCE_DIR}/packaging/debian/triggers)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)

# hapax-dbgsym: the symbols of what is in the .deb, for gdb.
file(CONFIGURE OUTPUT CPackSymbols.cmake @ONLY CONTENT [[
include(@PROJECT_BINARY_DIR@/CPackConfig.cmake)
set(CPACK_PACKAGE_NAME hapax-dbgsym)
set(CPACK_DEBIAN_PACKAGE_NAME hapax-dbgsym)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Debug symbols for hapax")
set(CPACK_PACKAGE_DESCRIPTION "The symbols of the program hapax and of libhapax, where gdb looks for them.")
set(CPACK_INSTALL_CMAKE_PROJECTS "@PROJECT_BINARY_DIR@;hapax;symbols;/")
set(CPACK_STRIP_FILES OFF)
set(CPACK_DEBIAN_PACKAGE_SECTION debug)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS OFF)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "hapax (= @PROJECT_VERSION@)")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "")
]])
