# Which requests of find_package() this version serves: those of its own major version up to it and, while that
# is 0, of its own minor version alone.

set(PACKAGE_VERSION "0.1.0")

string(REPLACE "." ";" _own "${PACKAGE_VERSION}")
list(GET _own 0 _major)
list(GET _own 1 _minor)
set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
    set(PACKAGE_VERSION_EXACT TRUE)
elseif(PACKAGE_FIND_VERSION VERSION_LESS PACKAGE_VERSION AND PACKAGE_FIND_VERSION_MAJOR EQUAL _major)
    if(_major GREATER 0 OR PACKAGE_FIND_VERSION_MINOR EQUAL _minor)
        set(PACKAGE_VERSION_COMPATIBLE TRUE)
    endif()
endif()
# A library of the other word size is none.
if(CMAKE_SIZEOF_VOID_P AND NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(PACKAGE_VERSION_UNSUITABLE TRUE)
endif()
unset(_own)
unset(_major)
unset(_minor)
