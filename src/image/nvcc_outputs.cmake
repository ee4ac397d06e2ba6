# Builds what nvcc_test and wrapper_test read, with the machine's nvcc.

set(outputs_dir ${CMAKE_CURRENT_BINARY_DIR}/nvcc_outputs)
file(MAKE_DIRECTORY ${outputs_dir})
set(testdata ${CMAKE_CURRENT_SOURCE_DIR}/testdata)
set(nvcc_outputs "")

# nvcc_output(NAME source options...): one file made by one run of nvcc.
function(nvcc_output name source)
  add_custom_command(OUTPUT ${outputs_dir}/${name}
    COMMAND ${HEDDLE_NVCC} ${ARGN} -o ${outputs_dir}/${name} ${testdata}/${source}
    DEPENDS ${testdata}/${source} VERBATIM)
  set(nvcc_outputs ${nvcc_outputs} ${outputs_dir}/${name} PARENT_SCOPE)
endfunction()

set(every_arch "")
foreach(arch 75 90 100 120)
  list(APPEND every_arch -gencode arch=compute_${arch},code=[sm_${arch},compute_${arch}])
endforeach()
nvcc_output(all.fatbin kernels.cu -fatbin ${every_arch})
foreach(mode none speed balance size)
  nvcc_output(${mode}.fatbin kernels.cu -fatbin -arch=sm_80 -compress-mode=${mode})
endforeach()
nvcc_output(machine_only.fatbin kernels.cu -fatbin -gencode arch=compute_80,code=sm_80)
nvcc_output(ptx_only.fatbin kernels.cu -fatbin -gencode arch=compute_75,code=compute_75)
nvcc_output(effects.fatbin effects.cu -fatbin -arch=sm_80)
nvcc_output(effects_debug.fatbin effects.cu -fatbin -G -arch=sm_80)
nvcc_output(debug.fatbin kernels.cu -fatbin -G -arch=sm_80)
nvcc_output(specific.fatbin kernels.cu -fatbin -gencode arch=compute_90a,code=[sm_90a,compute_90a]
            -gencode arch=compute_100f,code=[sm_100f,compute_100f])
# Units of a program of several, each in one form only.
nvcc_output(unit_a_ptx.fatbin unit_a.cu -fatbin -rdc=true -gencode arch=compute_80,code=compute_80)
nvcc_output(unit_b_machine.fatbin unit_b.cu -fatbin -rdc=true -gencode arch=compute_80,code=sm_80)
nvcc_output(conditions_ptx.fatbin conditions.cu -fatbin -rdc=true -gencode arch=compute_80,code=compute_80)
nvcc_output(conditions_machine.fatbin conditions.cu -fatbin -rdc=true -gencode arch=compute_80,code=sm_80)

# Machine code with ptxas's report beside it.
foreach(arch 75 90 100 120)
  add_custom_command(OUTPUT ${outputs_dir}/sm_${arch}.cubin ${outputs_dir}/sm_${arch}.report
    COMMAND ${HEDDLE_NVCC} --cubin -arch=sm_${arch} -Xptxas -v -o ${outputs_dir}/sm_${arch}.cubin
            ${testdata}/kernels.cu 2> ${outputs_dir}/sm_${arch}.report
    DEPENDS ${testdata}/kernels.cu VERBATIM)
  list(APPEND nvcc_outputs ${outputs_dir}/sm_${arch}.cubin)
endforeach()
add_custom_target(image_nvcc_outputs DEPENDS ${nvcc_outputs})

# Object files with their registration code.
nvcc_output(whole.o whole.cu -c -arch=sm_80 -Xcompiler -fPIE)
nvcc_output(unit_a.o unit_a.cu -c -rdc=true -arch=sm_80 -Xcompiler -fPIE)
nvcc_output(unit_b.o unit_b.cu -c -rdc=true -arch=sm_80 -Xcompiler -fPIE)
set(unit_objects ${outputs_dir}/unit_a.o ${outputs_dir}/unit_b.o)
add_custom_command(OUTPUT ${outputs_dir}/linked.o
  COMMAND ${HEDDLE_NVCC} -dlink -arch=sm_80 -Xcompiler -fPIE -o ${outputs_dir}/linked.o ${unit_objects}
  DEPENDS ${unit_objects} VERBATIM)
set(wrapper_objects ${outputs_dir}/whole.o ${unit_objects} ${outputs_dir}/linked.o)
set_source_files_properties(${wrapper_objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)

heddle_test(image_nvcc_test SOURCES nvcc_test.cc effects_nvcc_test.cc USES heddle_image)
add_dependencies(image_nvcc_test image_nvcc_outputs)
target_compile_definitions(image_nvcc_test PRIVATE HEDDLE_IMAGE_TEST_OUTPUTS="${outputs_dir}")
heddle_test(image_wrapper_test SOURCES wrapper_test.cc ${wrapper_objects} USES heddle_image)
