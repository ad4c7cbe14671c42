# The targets, for the installed package and for CMakeLists.txt, where the libraries are still to be built.

# What the static library needs of the system, as `rustc --print native-static-libs` says it; of the shared one
# the linker knows.
set(hsa_serializer_PRIVATE_LIBRARIES gcc_s util rt pthread m dl c)

# A library that is an empty string or not found has no target.
function(hsa_serializer_targets include shared static)
    if(shared AND NOT TARGET hsa_serializer::hsa_serializer)
        add_library(hsa_serializer::hsa_serializer SHARED IMPORTED GLOBAL)
        set_target_properties(hsa_serializer::hsa_serializer PROPERTIES
            IMPORTED_LOCATION "${shared}"
            INTERFACE_INCLUDE_DIRECTORIES "${include}")
    endif()
    if(static AND NOT TARGET hsa_serializer::static)
        add_library(hsa_serializer::static STATIC IMPORTED GLOBAL)
        set_target_properties(hsa_serializer::static PROPERTIES
            IMPORTED_LOCATION "${static}"
            IMPORTED_LINK_INTERFACE_LANGUAGES C
            INTERFACE_LINK_LIBRARIES "${hsa_serializer_PRIVATE_LIBRARIES}"
            INTERFACE_INCLUDE_DIRECTORIES "${include}")
    endif()
endfunction()
