#!/usr/bin/env python3
"""The tests labeled gpu that need MPI, UCX or HDF5, for a host that has a GPU but none of these.

  programs.py pack BUILD FILE.tar.gz        packs their programs and all libraries from a build of this project
  programs.py run FILE.tar.gz DIR [OUT]     unpacks them into DIR and runs them; exits with 1 if one failed
  programs.py call FILE.tar.gz DIR COMMAND...  unpacks them, and runs COMMAND in the directory that contains bin/, with an
                                            environment for them and for mpirun

`run` needs Linux on x86-64 with a glibc at least as new as that of the packing host, and Python. With CAPSTAN_TEST_GPU in the
environment, which tests/gpu_machine/run sets, a test fails if there is no GPU; otherwise stand-ins are used.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import open_mpi  # sets the environment of mpirun

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
# Libraries of glibc and of the compiler: the target host has its own, at least as new.
OF_THE_SYSTEM = re.compile(r"/(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libgcc_s|libstdc\+\+)\.so")
# Plugins that Open MPI and UCX load by name.
PLUGINS = [LIBRARIES / "openmpi/lib/openmpi3", LIBRARIES / "pmix2/lib/pmix", LIBRARIES / "ucx"]
HELP = [pathlib.Path("/usr/share/openmpi"), LIBRARIES / "pmix2/share/pmix"]


# Programs that only `call` runs.
ALSO = ["bin/plain_kge"]


def tests_of(build):
    """Yields (name, seconds, arguments) of each test; programs of the build begin with "bin/", scripts with "tests/"."""
    shown = subprocess.run(["ctest", "--show-only=json-v1", "-L", "gpu"], cwd=build, check=True, capture_output=True, text=True)
    for test in json.loads(shown.stdout)["tests"]:
        if "command" not in test:
            sys.exit(f"programs.py: {test['name']} has not been built; run launch/setup --tests first")
        command = [word.replace(f"{build}/", "").replace(f"{ROOT}/", "") for word in test["command"]]
        properties = {one["name"]: one["value"] for one in test.get("properties", [])}
        yield test["name"], properties.get("TIMEOUT", 60), command


def scripts_of(script, known):
    """Returns `known` with `script` and the test scripts that it imports."""
    known.add(script)
    for name in re.findall(r"^(?:from|import) (\w+)", script.read_text(), re.MULTILINE):
        for directory in (script.parent, ROOT / "tests/support"):
            if (found := directory / f"{name}.py").exists() and found not in known:
                scripts_of(found, known)
    return known


def programs_of(command):
    if command[0].startswith("bin/"):
        return {command[0]}
    script = ROOT / next(word for word in command if word.endswith(".py"))
    named = [name for one in scripts_of(script, set()) for name in re.findall(r'BIN / "(\w+)"', one.read_text())]
    return {"bin/capstan", *(f"bin/{name}" for name in named)}


def libraries_of(file):
    output = subprocess.run(["ldd", file], capture_output=True, text=True).stdout
    found = re.findall(r"^\s*(\S+) => (/\S+)", output, re.MULTILINE)
    return {(name, path) for name, path in found if not OF_THE_SYSTEM.search(path)}


def pack(build, to):
    build = pathlib.Path(build).resolve()
    tests = list(tests_of(build))
    programs = sorted(set(ALSO).union(*(programs_of(command) for _, _, command in tests)))
    with tempfile.TemporaryDirectory() as scratch:
        top = pathlib.Path(scratch, "programs")
        (top / "bin").mkdir(parents=True)
        (top / "lib").mkdir()
        for program in programs:
            subprocess.run(["strip", "-o", top / program, build / program], check=True)
        (top / "usr/bin").mkdir(parents=True)
        for name in ("orterun", "orted"):
            shutil.copy(shutil.which(name), top / "usr/bin")
        (top / "usr/bin/mpirun").symlink_to("orterun")
        files = [*(build / program for program in programs), shutil.which("orterun")]
        for directory in PLUGINS:
            files += [path for path in directory.glob("*.so*") if not path.is_symlink()]
        for name, path in set().union(*(libraries_of(file) for file in files)):
            shutil.copy(path, top / "lib" / name)
        for directory in [*PLUGINS, *HELP]:
            shutil.copytree(directory, top / directory.relative_to("/"), ignore=shutil.ignore_patterns("*.a", "*.la"), symlinks=True)
        (top / "tests.json").write_text(json.dumps(tests, indent=1))
        with tarfile.open(to, "w:gz") as archive:
            archive.add(top, "programs")
    print(f"{pathlib.Path(to).stat().st_size >> 20} MiB in {to}: {len(tests)} tests, {len(programs)} programs")


def environment(top):
    libraries = top / "usr/lib/x86_64-linux-gnu"
    return {
        **os.environ,
        "PATH": f"{top / 'usr/bin'}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": f"{top / 'lib'}:{libraries / 'openmpi/lib'}",
        "OPAL_PREFIX": str(top / "usr"),
        "PMIX_INSTALL_PREFIX": str(libraries / "pmix2"),
        "UCX_MODULE_DIR": str(libraries / "ucx"),
    }


def words_of(command, top):
    """Returns the command with the paths of this host."""
    if command[0].startswith("bin/"):
        return [top / command[0], *command[1:]]
    here = {"bin": top / "bin"}
    words = [here.get(word, ROOT / word if word.endswith(".py") else word) for word in command[1:]]
    return [sys.executable, *(top / "usr/bin/orterun" if str(word).endswith(("mpiexec", "mpirun")) else word for word in words)]


def unpacked(archive, directory):
    with tarfile.open(archive) as packed:
        packed.extractall(directory)
    return pathlib.Path(directory, "programs").resolve()


def call(archive, directory, *command):
    top = unpacked(archive, directory)
    return subprocess.run(command, cwd=top, env=environment(top)).returncode


def run(archive, directory, out=None):
    top = unpacked(archive, directory)
    failed = []
    tests = json.loads((top / "tests.json").read_text())
    for name, seconds, command in tests:
        log = pathlib.Path(out or directory, f"{name}.log")
        with open(log, "wb") as text:
            try:
                code = subprocess.run([str(word) for word in words_of(command, top)], cwd=directory, env=environment(top),
                                      stdout=text, stderr=subprocess.STDOUT, timeout=3 * seconds).returncode
            except subprocess.TimeoutExpired:
                code = f"none after {3 * seconds:.0f} s"
        output = log.read_text(errors="replace")
        skipped = len(re.findall(r"^\[  SKIPPED \] \w", output, re.MULTILINE))
        print(f"{name}: {'passed' if code == 0 else f'exit code {code}'}{f', {skipped} skipped' if skipped else ''}", flush=True)
        if code != 0:
            failed.append(name)
            print(output[-3000:])
    print(f"{len(tests) - len(failed)} of {len(tests)} passed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "pack":
        sys.exit(pack(*sys.argv[2:]))
    if len(sys.argv) in (4, 5) and sys.argv[1] == "run":
        sys.exit(run(*sys.argv[2:]))
    if len(sys.argv) > 4 and sys.argv[1] == "call":
        sys.exit(call(*sys.argv[2:]))
    sys.exit(__doc__)
