# SPDX-License-Identifier: Apache-2.0
# libtendon, for other people's programs: shared and static, with the symbols of
# libtendon.map and no others, and what `cmake --install` puts where.
include(GNUInstallDirs)
set(TD_MAP ${PROJECT_SOURCE_DIR}/cmake/libtendon.map)

add_library(tendon_shared SHARED $<TARGET_OBJECTS:td_client>
  $<TARGET_OBJECTS:td_edge> $<TARGET_OBJECTS:td_server>)
target_link_libraries(tendon_shared PRIVATE td_client td_server)
target_include_directories(tendon_shared INTERFACE
  ${PROJECT_SOURCE_DIR}/include)
target_link_options(tendon_shared PRIVATE -Wl,--version-script=${TD_MAP}
  -Wl,--as-needed)
set_target_properties(tendon_shared PROPERTIES
  LINKER_LANGUAGE C OUTPUT_NAME tendon LINK_DEPENDS ${TD_MAP}
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

td_ship(tendon_shared)

# One object of what the map names and what that calls, in which only what the map
# names is still global: neither our names nor those of Rust's library meet the
# user's own.
file(STRINGS ${TD_MAP} names REGEX "^ +td_")
list(TRANSFORM names REPLACE "^ +([^;]+).*" "\\1")
list(TRANSFORM names PREPEND "--keep-global-symbol=" OUTPUT_VARIABLE exported)
list(TRANSFORM names PREPEND "-Wl,--undefined=" OUTPUT_VARIABLE wanted)
set(TD_STATIC ${PROJECT_BINARY_DIR}/libtendon.a)
set(TD_PARTS td_client td_edge td_robot td_server td_sched td_engine
  td_dataset td_media td_config td_net td_wire td_base)
list(TRANSFORM TD_PARTS REPLACE "(.+)" "$<TARGET_FILE:\\1>"
  OUTPUT_VARIABLE part_files)
# Parts that are optimised at linking become plain code here.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set(TD_AS_CODE -flinker-output=nolto-rel)
endif()
add_custom_command(OUTPUT ${TD_STATIC}
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -Wl,-z,noexecstack
          ${TD_AS_CODE} -o libtendon.o
          -Wl,--gc-sections ${wanted}
          -Wl,--start-group ${part_files} ${TD_ZENOH_LIB} -Wl,--end-group
  COMMAND ${CMAKE_OBJCOPY} --strip-unneeded --remove-section=.llvmbc
          --remove-section=.llvmcmd ${exported} libtendon.o
  COMMAND ${CMAKE_COMMAND} -E rm -f ${TD_STATIC}
  COMMAND ${CMAKE_AR} rcs ${TD_STATIC} libtendon.o
  COMMAND ${CMAKE_COMMAND} -E rm -f libtendon.o
  DEPENDS ${TD_PARTS} ${TD_ZENOH_LIB} ${TD_MAP}
  VERBATIM COMMENT "Linking C static library libtendon.a")
add_custom_target(tendon_static DEPENDS ${TD_STATIC})

# What users get: `make all`, and what `cmake --install` installs.
add_custom_target(shipped DEPENDS tendon tendon_bench tendon_shared tendon_static
  tendon_video tendon_formats)

cmake_path(GET TD_MSGPACK STEM LAST_ONLY TD_MSGPACK_NAME)
string(REGEX REPLACE "^lib" "" TD_MSGPACK_NAME ${TD_MSGPACK_NAME})
file(RELATIVE_PATH TD_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/tendon.pc.in tendon.pc @ONLY)
install(TARGETS tendon tendon_bench tendon_shared)
install(TARGETS tendon_video DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${TD_FORMATS_LIB} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY python/tendon DESTINATION ${CMAKE_INSTALL_DATADIR}/tendon/python
  FILES_MATCHING PATTERN "*.py")
install(FILES ${TD_STATIC} DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
install(FILES include/tendon/robot.h include/tendon/connect.h
  include/tendon/server.h include/tendon/infer.h
  include/tendon/err.h include/tendon/library.h
  include/tendon/score.h include/tendon/tendon.hpp
  include/tendon/robot.hpp include/tendon/connect.hpp include/tendon/err.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tendon)
install(FILES ${PROJECT_BINARY_DIR}/tendon.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
