"""Spack recipe of Capstan; see docs/running.md for its use, and for what was checked."""

import os

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.python import PythonPipBuilder

from spack.package import *


class Capstan(CMakePackage, CudaPackage):
    """A parameter-server runtime for supercomputers, on MPI, UCX and HDF5."""

    # Placeholders: there is no public release. launch/release writes a copy of this file with the
    # checksum of its archive, which has to be beside the copy. ../../spack.yaml builds the
    # surrounding source tree as a develop package instead.
    homepage = "https://example.org/capstan"
    url = "https://example.org/capstan-0.1.0.tar.gz"
    maintainers("capstan-contributors")

    tags = ["e4s"]
    license("Apache-2.0")

    version("0.1.0")

    variant("shared", default=True, description="Build a shared instead of a static library")
    variant("mpi", default=True, description="Start jobs by MPI; required")
    variant("python", default=False, description="Install the Python package")
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
    depends_on("spdlog@1.10:")
    depends_on("cli11@2:")
    depends_on("nlohmann-json@3.11:")
    depends_on("tomlplusplus@3:")
    depends_on("highway")
    depends_on("xxhash")
    depends_on("zlib-api")
    depends_on("openblas")
    depends_on("googletest +gmock", when="+tests")
    depends_on("python@3.9:", type=("build", "test"), when="+tests")

    with when("+cuda"):
        depends_on("nccl")
        depends_on("ucx +cuda")

    with when("+python"):
        extends("python@3.10:")
        depends_on("py-pip", type="build")
        depends_on("py-scikit-build-core@0.10:", type="build")
        depends_on("py-nanobind@2.4:", type="build")
        depends_on("py-numpy@1.24:", type=("build", "run"))
        depends_on("py-cloudpickle@2.2:", type=("build", "run"))

    conflicts("~mpi", msg="Capstan needs MPI to start jobs")
    conflicts("~shared", when="+python", msg="the Python package links the shared library")
    conflicts("%gcc@:10", msg="Capstan needs C++20: GCC 11 or newer")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("CAPSTAN_BUILD_TESTS", "tests"),
            self.define_from_variant("CAPSTAN_CUDA", "cuda"),
            self.define("CAPSTAN_BUILD_PERF", False),
            self.define("CAPSTAN_BUILD_EXAMPLES", False),
        ]
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            architectures = self.spec.variants["cuda_arch"].value
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", architectures))
        return args

    @run_after("install")
    def install_python_package(self):
        """Builds the extension module against the library that was just installed."""
        if self.spec.satisfies("+python"):
            others = os.environ.get("CMAKE_PREFIX_PATH", "")
            os.environ["CMAKE_PREFIX_PATH"] = f"{self.prefix}:{others}"
            with working_dir(self.stage.source_path):
                pip(*PythonPipBuilder.std_args(self), f"--prefix={self.prefix}", ".")

    def test_version(self):
        """the program reports its version"""
        capstan = which(self.prefix.bin.capstan)
        output = capstan("--version", output=str.split, error=str.split)
        assert f"capstan {self.spec.version}" in output

    def test_doctor(self):
        """the libraries at run time are those of the build"""
        capstan = which(self.prefix.bin.capstan)
        capstan("doctor", "--only", "mpi,ucx,hdf5,hwloc")

    def test_training(self):
        """a training in one process learns a small graph"""
        os.makedirs("graph", exist_ok=True)
        triples = [f"hour{hour}\tafter\thour{(hour + 1) % 24}\n" for hour in range(24)]
        for name in ("train", "valid", "test"):
            with open(os.path.join("graph", f"{name}.txt"), "w", encoding="utf-8") as file:
                file.writelines(triples)
        capstan = which(self.prefix.bin.capstan)
        options = "--dim 16 --negatives 8 --batch 8 --epochs 100 --summary summary.json".split()
        capstan("train", "kge", "--data", "graph", *options)
        with open("summary.json", encoding="utf-8") as file:
            assert '"test"' in file.read()

    def test_python(self):
        """the Python package can be imported"""
        if self.spec.satisfies("~python"):
            raise SkipTest("built without +python")
        python = self.spec["python"].command
        program = "import capstan; print(capstan.__version__)"
        output = python("-c", program, output=str.split, error=str.split)
        assert str(self.spec.version) in output
