# Asks a test program (PROGRAM) for its suites and writes a CTest entry for each into LIST, so that CTest runs them side
# by side and names the one that fails. Not one for each case: a process takes most of a second to load LibTorch.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" lines "${text}")
set(entries "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.")
    set(name "${ROOM}.${CMAKE_MATCH_1}")
    string(APPEND entries "add_test([=[${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${CMAKE_MATCH_1}.*]=])\n"
      "set_tests_properties([=[${name}]=] PROPERTIES ENVIRONMENT [=[GALVANI_CACHE=${CACHE}]=])\n")
  endif()
endforeach()
file(WRITE ${LIST} "${entries}")
