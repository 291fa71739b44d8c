"""Spack recipe of Capstan; see docs/running.md for its use. Untested: no Spack was available."""

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Capstan(CMakePackage):
    """A parameter-server runtime for supercomputers, on MPI, UCX and HDF5."""

    # There is no release archive yet: ../../spack.yaml builds the surrounding source tree as a develop package.
    license("Apache-2.0")
    version("0.1.0")
    tags = ["e4s"]

    variant("shared", default=True, description="Build a shared instead of a static library")
    variant("tests", default=False, description="Build the tests")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("mpi")
    # By default, UCX of Spack has neither RDMA nor thread support.
    depends_on("ucx@1.13: +thread_multiple +verbs +rc +ud +dc +mlx5_dv +cma")
    depends_on("hdf5@1.10:")
    depends_on("hwloc@2.1:")
    depends_on("fmt@9:")
    depends_on("spdlog@1.10: +fmt_external")
    depends_on("cli11@2:")
    depends_on("nlohmann-json@3.11:")
    depends_on("tomlplusplus@3:")
    depends_on("highway")
    depends_on("xxhash")
    depends_on("zlib-api")
    depends_on("openblas")
    depends_on("googletest +gmock", when="+tests")
    depends_on("python@3.9:", type=("build", "test"), when="+tests")

    conflicts("%gcc@:11", msg="Capstan needs C++20: GCC 12 or newer")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("CAPSTAN_BUILD_TESTS", "tests"),
            self.define("CAPSTAN_BUILD_PERF", False),
            self.define("CAPSTAN_BUILD_EXAMPLES", False),
        ]
