# Warnings, sanitizers, assertions and coverage that every target of the project is built with, through the interface target ps_options.
add_library(ps_options INTERFACE)
target_compile_options(ps_options INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla>)
target_compile_definitions(ps_options INTERFACE _GNU_SOURCE H5_USE_110_API) # later HDF5 versions keep the calls of 1.10
if(PS_WERROR)
  target_compile_options(ps_options INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
if(PS_SANITIZE)
  target_compile_options(ps_options INTERFACE $<$<COMPILE_LANGUAGE:C>:-fsanitize=${PS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined>)
  target_link_options(ps_options INTERFACE -fsanitize=${PS_SANITIZE})
endif()
if(PS_ASSERTIONS)
  target_compile_definitions(ps_options INTERFACE PS_ASSERTIONS) # read by core/assert.h alone
endif()
if(PS_COVERAGE)
  target_compile_options(ps_options INTERFACE $<$<COMPILE_LANGUAGE:C>:--coverage -fprofile-update=atomic -fprofile-abs-path>)
  target_link_options(ps_options INTERFACE --coverage)
endif()
target_include_directories(ps_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src)
