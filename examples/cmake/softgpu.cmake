# The target softgpu_c: the emulated GPU of this repository, built by cargo.

get_filename_component(softgpu_root "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(softgpu_cargo "${softgpu_root}/target" ABSOLUTE)
find_program(SOFTGPU_CARGO cargo HINTS "$ENV{HOME}/.cargo/bin")
add_custom_target(softgpu_build
    COMMAND "${SOFTGPU_CARGO}" build --release --package softgpu-c --lib --target-dir "${softgpu_cargo}" --locked
    BYPRODUCTS "${softgpu_cargo}/release/libsoftgpu_c.so"
    WORKING_DIRECTORY "${softgpu_root}"
    COMMENT "Building the emulated GPU by cargo"
    USES_TERMINAL
    VERBATIM)
add_library(softgpu_c SHARED IMPORTED)
set_target_properties(softgpu_c PROPERTIES
    IMPORTED_LOCATION "${softgpu_cargo}/release/libsoftgpu_c.so"
    # It has no soname: it is found where it was built.
    IMPORTED_NO_SONAME ON
    INTERFACE_INCLUDE_DIRECTORIES "${softgpu_root}/softgpu/c/include")
add_dependencies(softgpu_c softgpu_build)
