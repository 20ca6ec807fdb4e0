# The oracle's cases are made once per build folder, before the tests that read them. Without python3 with numpy and h5py the test that
# makes them is skipped, and those tests run on the stored reference cases alone.
set(PS_ORACLE_CASES ${CMAKE_CURRENT_BINARY_DIR}/oracle_cases)
add_test(NAME contract.oracle COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/oracle/make_cases.sh ${PS_ORACLE_CASES})
set_tests_properties(contract.oracle PROPERTIES LABELS contract TIMEOUT 300 SKIP_RETURN_CODE 77 PROCESSORS 2 FIXTURES_SETUP oracle_cases)
set_tests_properties(contract.test_stored_cases PROPERTIES FIXTURES_REQUIRED oracle_cases ENVIRONMENT PS_ORACLE_CASES=${PS_ORACLE_CASES})

# The fast CPU path once more with each instruction set that it is compiled for; one that this machine lacks is skipped.
foreach(isa baseline avx2)
  foreach(test test_stored_cases test_backend_laws test_backend_invariance test_trials)
    add_test(NAME contract.${test}.${isa} COMMAND ${test})
    set_tests_properties(contract.${test}.${isa} PROPERTIES LABELS contract TIMEOUT 300 SKIP_RETURN_CODE 77 PROCESSORS 2 FIXTURES_REQUIRED oracle_cases
      ENVIRONMENT_MODIFICATION "OMP_WAIT_POLICY=set:passive;${ps_contract_modification}"
      ENVIRONMENT "PS_ORACLE_CASES=${PS_ORACLE_CASES};PS_CONTRACT_BACKENDS=cpu-fast;PS_CPU_ISA=${isa}")
  endforeach()
endforeach()
