# find_package(hsa_serializer CONFIG): the targets
#   hsa_serializer::hsa_serializer  the shared library
#   hsa_serializer::static          the static one, with what it needs of the system
# whichever of the two are installed; and hsa_serializer_VERSION.
#
# Installed by cargo-c and by CMakeLists.txt, which can't tell it where the libraries went: it looks for them
# under the prefix that it lies in itself, so the whole can be moved.

get_filename_component(_hsa_serializer_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

function(_hsa_serializer_find variable file)
    set(${variable} "${variable}-NOTFOUND" PARENT_SCOPE)
    # In a Debian package the architecture has a directory of its own.
    foreach(directory lib "lib/${CMAKE_LIBRARY_ARCHITECTURE}" lib64)
        if(EXISTS "${_hsa_serializer_prefix}/${directory}/${file}")
            set(${variable} "${_hsa_serializer_prefix}/${directory}/${file}" PARENT_SCOPE)
            return()
        endif()
    endforeach()
endfunction()

_hsa_serializer_find(_hsa_serializer_shared "${CMAKE_SHARED_LIBRARY_PREFIX}hsa_serializer${CMAKE_SHARED_LIBRARY_SUFFIX}")
_hsa_serializer_find(_hsa_serializer_static "${CMAKE_STATIC_LIBRARY_PREFIX}hsa_serializer${CMAKE_STATIC_LIBRARY_SUFFIX}")
set(_hsa_serializer_include "${_hsa_serializer_prefix}/include")

if(NOT EXISTS "${_hsa_serializer_include}/hsa_serializer.h")
    set(hsa_serializer_FOUND FALSE)
    set(hsa_serializer_NOT_FOUND_MESSAGE "${_hsa_serializer_include} has no hsa_serializer.h")
elseif(NOT _hsa_serializer_shared AND NOT _hsa_serializer_static)
    set(hsa_serializer_FOUND FALSE)
    set(hsa_serializer_NOT_FOUND_MESSAGE "there is no library under ${_hsa_serializer_prefix}")
endif()

include("${CMAKE_CURRENT_LIST_DIR}/hsa_serializerConfigTargets.cmake")
hsa_serializer_targets("${_hsa_serializer_include}" "${_hsa_serializer_shared}" "${_hsa_serializer_static}")

unset(_hsa_serializer_prefix)
unset(_hsa_serializer_shared)
unset(_hsa_serializer_static)
unset(_hsa_serializer_include)
