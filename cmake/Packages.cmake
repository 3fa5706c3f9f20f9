# Debian packages (`./dev package`): the program, the library, the Python package. What a package needs of others is read
# off its binaries; who builds against the static libraries needs what GalvaniConfig.cmake looks for.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME galvani)
set(CPACK_PACKAGE_CONTACT "The authors of Galvani <galvani@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)

# The reference BLAS, which any other would satisfy, is many times slower.
set(fast_blas libopenblas0-openmp)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME galvani)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS ${fast_blas})
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "openmpi-bin, python3-galvani")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "tests deep neural networks the way a fuzzer tests programs
Coverage, fuzzing, attacks, selection, explanation and repair of image and
sound classifiers in ONNX and TorchScript files.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libgalvani-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
string(CONCAT CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libtorch-dev, libdnnl-dev, libonnx-dev, libprotobuf-dev, "
  "libopencv-core-dev, libopencv-imgproc-dev, libopencv-imgcodecs-dev, libsndfile1-dev, libsamplerate0-dev, "
  "librubberband-dev, libarchive-dev, zlib1g-dev, libsqlite3-dev, libssl-dev, libfmt-dev, libspdlog-dev, "
  "libtomlplusplus-dev, libxgboost-dev, libicu-dev, ${fast_blas}")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "tests deep neural networks - library and headers
For C++ programs: find_package(Galvani), galvani::galvani.")

if(GALVANI_PYTHON_VERSION)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-galvani)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
  "python3 (>= ${GALVANI_PYTHON_VERSION}), python3 (<< ${GALVANI_PYTHON_VERSION}.99), python3-numpy, ${fast_blas}")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-torch")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "tests deep neural networks - Python package
Networks with NumPy arrays in and out, every verb of the command line as a
function, campaigns as columns, components in Python.")

foreach(part ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${part} name)
  install(FILES LICENSE DESTINATION share/doc/${CPACK_DEBIAN_${name}_PACKAGE_NAME} RENAME copyright COMPONENT ${part})
endforeach()
include(CPack)
