# find_package(dab): the target dab::dab, which is the static library (also called dab::static), and dab::shared where
# dab-ffi/install made one. It finds its tree from where it lies, so the tree may be moved.
get_filename_component(_dab_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
file(STRINGS "${_dab_prefix}/include/dab.h" dab_ABI_VERSION REGEX "^#define DAB_ABI_VERSION ")
string(REGEX REPLACE "^#define DAB_ABI_VERSION ([0-9]+).*" "\\1" dab_ABI_VERSION "${dab_ABI_VERSION}")

# An install tree has one archive; a package of dab-ffi/dist has one for each processor.
set(_dab_archive "${_dab_prefix}/lib/libdab.a")
set(_dab_why "")
if(NOT EXISTS "${_dab_archive}")
  include("${CMAKE_CURRENT_LIST_DIR}/dab-archive.cmake")
  dab_archive("${_dab_prefix}/lib" _dab_archive _dab_why)
endif()

if(_dab_why)
  set(dab_FOUND FALSE)
  set(dab_NOT_FOUND_MESSAGE "${_dab_why}")
else()
  # Global: FetchContent and add_subdirectory make them below the folder that uses them.
  if(NOT TARGET dab::static)
    add_library(dab::static STATIC IMPORTED GLOBAL)
    set_target_properties(dab::static PROPERTIES
      IMPORTED_LOCATION "${_dab_archive}"
      INTERFACE_INCLUDE_DIRECTORIES "${_dab_prefix}/include")
    add_library(dab::dab INTERFACE IMPORTED GLOBAL)
    set_target_properties(dab::dab PROPERTIES INTERFACE_LINK_LIBRARIES dab::static)
  endif()
  if(NOT TARGET dab::shared AND EXISTS "${_dab_prefix}/lib/libdab.so")
    add_library(dab::shared SHARED IMPORTED GLOBAL)
    set_target_properties(dab::shared PROPERTIES
      IMPORTED_LOCATION "${_dab_prefix}/lib/libdab.so"
      IMPORTED_SONAME "libdab.so.${dab_ABI_VERSION}"
      INTERFACE_INCLUDE_DIRECTORIES "${_dab_prefix}/include")
  endif()
  # What ament_target_dependencies(program dab) of ROS 2 links.
  set(dab_TARGETS dab::dab)
endif()
unset(_dab_why)
unset(_dab_archive)
unset(_dab_prefix)
