# How heddle's rooms, tests and benchmarks are declared.

find_package(Threads REQUIRED)

add_library(heddle_options INTERFACE)
target_compile_options(heddle_options INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
target_include_directories(heddle_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(heddle_options INTERFACE Threads::Threads)
if(HEDDLE_SANITIZE)
  target_compile_options(heddle_options INTERFACE -fsanitize=${HEDDLE_SANITIZE} -fno-omit-frame-pointer)
  if(HEDDLE_SANITIZE MATCHES "undefined")
    target_compile_options(heddle_options INTERFACE -fno-sanitize-recover=undefined)
  endif()
  target_link_options(heddle_options INTERFACE -fsanitize=${HEDDLE_SANITIZE})
  # Programs that nvcc built load heddle's libraries: one runtime for all that is in a process, so a shared one.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND HEDDLE_SANITIZE MATCHES "address")
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.asan-x86_64.so
                    OUTPUT_VARIABLE HEDDLE_SANITIZER_LIBRARY OUTPUT_STRIP_TRAILING_WHITESPACE)
    get_filename_component(sanitizer_directory ${HEDDLE_SANITIZER_LIBRARY} DIRECTORY)
    target_link_options(heddle_options INTERFACE -shared-libsan -Wl,-rpath,${sanitizer_directory})
  elseif(HEDDLE_SANITIZE MATCHES "address")
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so
                    OUTPUT_VARIABLE HEDDLE_SANITIZER_LIBRARY OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()

if(HEDDLE_FUZZ)
  target_compile_options(heddle_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# With -DHEDDLE_TOGETHER=ON (the presets) several files of a target are compiled as one, so that headers are read less
# often. Names in the files' unnamed namespaces must differ for that; APART leaves a target out where they do not.
function(heddle_together target)
  if(HEDDLE_TOGETHER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# heddle_room(NAME SOURCES a.cc ... USES other rooms and libraries ... [APART] [BUSY])
# A room is one static library. It sees only the rooms it names, so that an arrow that DESIGN does not draw fails to link.
# With a sanitizer nothing is optimised, which is quicker to compile, but for BUSY rooms, where tests spend their time.
function(heddle_room name)
  cmake_parse_arguments(ROOM "APART;BUSY" "" "SOURCES;USES" ${ARGN})
  add_library(heddle_${name} STATIC ${ROOM_SOURCES})
  if(NOT ROOM_APART)
    heddle_together(heddle_${name})
  endif()
  target_link_libraries(heddle_${name} PUBLIC heddle_options ${ROOM_USES})
  if(ROOM_BUSY AND HEDDLE_SANITIZE)
    target_compile_options(heddle_${name} PRIVATE -O1)
  endif()
endfunction()

# heddle_product(DIRECTORY target ...): installs the targets there, and makes them part of `product`: all that runs, and
# nothing that only checks it.
add_custom_target(product)
function(heddle_product directory)
  install(TARGETS ${ARGN} DESTINATION ${directory})
  add_dependencies(product ${ARGN})
endfunction()

# Seconds after which ctest ends a test that hangs. Longer than any wait in a test (120 s), even if the test's virtual
# machine is stopped for some minutes meanwhile.
set(HEDDLE_TEST_TIMEOUT 600)

# heddle_test(NAME SOURCES a_test.cc ... USES rooms ... [LABEL label] [TIMEOUT seconds] [APART])
# One GoogleTest program; every TEST in it becomes one ctest entry. One label at most; LABEL_tests builds all that have it.
# Labels: `e2e`, whole programs; `concurrent`, what ThreadSanitizer looks at.
function(heddle_test name)
  if(NOT HEDDLE_TESTS)
    return()
  endif()
  cmake_parse_arguments(TEST "APART" "TIMEOUT;LABEL" "SOURCES;USES" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${TEST_SOURCES})
  if(NOT TEST_APART)
    heddle_together(${name})
  endif()
  target_link_libraries(${name} PRIVATE ${TEST_USES} GTest::gtest GTest::gmock GTest::gtest_main)
  # Tests are compiled more often than they run: optimised, they take three times as long.
  target_compile_options(${name} PRIVATE -O0)
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT ${HEDDLE_TEST_TIMEOUT})
  endif()
  set(properties TIMEOUT ${TEST_TIMEOUT})
  if(TEST_LABEL)
    list(APPEND properties LABELS ${TEST_LABEL})
    if(NOT TARGET ${TEST_LABEL}_tests)
      add_custom_target(${TEST_LABEL}_tests)
    endif()
    add_dependencies(${TEST_LABEL}_tests ${name})
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
endfunction()

# heddle_bench(NAME SOURCES a_bench.cc ... USES rooms ...): one Google Benchmark program.
function(heddle_bench name)
  cmake_parse_arguments(BENCH "" "" "SOURCES;USES" ${ARGN})
  find_package(benchmark REQUIRED)
  add_executable(${name} ${BENCH_SOURCES})
  target_link_libraries(${name} PRIVATE ${BENCH_USES} benchmark::benchmark benchmark::benchmark_main)
endfunction()

# heddle_fuzz(NAME SOURCES NAME.cc ... USES rooms ...): one libFuzzer program, with -DHEDDLE_FUZZ=ON and clang; NAME ends
# in _fuzz. Its corpus lies beside it in corpus/NAME/. scripts/fuzz.sh finds both by their names.
function(heddle_fuzz name)
  if(NOT HEDDLE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(FUZZ "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${FUZZ_SOURCES})
  target_link_libraries(${name} PRIVATE ${FUZZ_USES})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
endfunction()
