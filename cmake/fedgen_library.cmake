# SPDX-License-Identifier: Apache-2.0

# Flags that every target of ours shares.
add_library(fedgen_flags INTERFACE)
target_include_directories(fedgen_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(fedgen_flags INTERFACE
  # Same seed, same bits: a * b + c is two roundings unless the code says Fma.
  -ffp-contract=off
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  # g++ 12 sees overlaps in "literal" + std::string that are not there.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${FEDGEN_WERROR}>:-Werror>)
# The kernels exist for AVX2 and for the baseline, which is the scalar twin (base/lanes-inl.h).
target_compile_definitions(fedgen_flags INTERFACE
  "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3|HWY_AVX3_DL)")
if(FEDGEN_SANITIZE)
  target_compile_options(fedgen_flags INTERFACE
    -fsanitize=${FEDGEN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g)
  target_link_options(fedgen_flags INTERFACE -fsanitize=${FEDGEN_SANITIZE})
endif()
if(FEDGEN_FUZZ)
  # The rooms report their coverage to libFuzzer too; only the targets of fuzz/ link its main.
  # Optimised for speed, but with every FEDGEN_DCHECK.
  target_compile_options(fedgen_flags INTERFACE -UNDEBUG
    -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(fedgen_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined)
endif()

# fedgen_library(room SOURCES a.cc ... [TESTS a_test.cc ...] [DEPS room or library ...]
#                [PRIVATE library ...])
# makes the library fedgen::room and, if there are tests, the program room_test.
function(fedgen_library room)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;DEPS;PRIVATE" ${ARGN})
  add_library(fedgen_${room} STATIC ${ARG_SOURCES})
  add_library(fedgen::${room} ALIAS fedgen_${room})
  target_link_libraries(fedgen_${room} PUBLIC fedgen_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE})
  # Kernels are short loops that gain from being unrolled.
  set(kernels ${ARG_SOURCES})
  list(FILTER kernels INCLUDE REGEX "_kernel\\.cc$")
  set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS -funroll-loops)
  if(FEDGEN_TESTS AND ARG_TESTS)
    fedgen_test(${room}_test SOURCES ${ARG_TESTS} DEPS fedgen::${room} ${ARG_PRIVATE})
  endif()
endfunction()

# fedgen_test(name SOURCES a_test.cc ... DEPS library ... [LABELS slow])
function(fedgen_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE fedgen_flags ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE FEDGEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS "${ARG_LABELS}")
endfunction()
