#!/usr/bin/env python3
"""wheel_test.py BUILD [--bundled] [--python PYTHON] -- builds a wheel and tests it in a fresh environment.

The wheel uses the Capstan of BUILD, which the script installs first. With --bundled, the wheel contains its own
Capstan. Without --python, the wheel is for the interpreter of this script, which must have nanobind and
scikit-build-core. With --python, the packages for PYTHON come from PyPI, and the tests of one process also run.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ["arrays", "checkpoint", "coordinator", "data", "metrics", "package", "replicas", "specification",
         "specification_coordinator", "table", "variable"]

parser = argparse.ArgumentParser()
parser.add_argument("build", type=pathlib.Path)
parser.add_argument("--bundled", action="store_true")
parser.add_argument("--python")
options = parser.parse_args()
timeout = 3000 if options.bundled else 280


def run(*words, cwd=None, **more):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    words = [str(word) for word in words]
    done = subprocess.run(words, env=environment, cwd=cwd or scratch, capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        sys.exit(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


with tempfile.TemporaryDirectory() as scratch:
    prefix, wheels, venv = (pathlib.Path(scratch, name) for name in ("prefix", "wheels", "venv"))
    if not options.bundled:
        run("cmake", "--install", options.build.resolve(), "--prefix", prefix)
    run(options.python or sys.executable, "-m", "venv", venv)
    python, pip = venv / "bin/python", ("-m", "pip", "--quiet", "--disable-pip-version-check")
    settings = ("--no-deps", "--wheel-dir", wheels, "--config-settings", f"build-dir={scratch}/build", ROOT)
    if options.python:
        run(python, *pip, "install", "numpy", "cloudpickle", "ml_dtypes", "pytest")
        run(python, *pip, "wheel", *settings, CMAKE_PREFIX_PATH=str(prefix))
    else:
        # numpy and cloudpickle come from the environment of this interpreter.
        site = next(venv.glob("lib/python*/site-packages"))
        (site / "others.pth").write_text(sysconfig.get_path("purelib"))
        run(sys.executable, *pip, "wheel", "--no-build-isolation", *settings, CMAKE_PREFIX_PATH=str(prefix))
    run(python, *pip, "install", "--no-deps", "--no-index", *wheels.glob("capstan-*.whl"))

    path = f"{venv / 'bin'}:{prefix / 'bin'}:{os.environ['PATH']}"
    where = run(python, "-c", "import capstan; print(capstan.__file__)")
    assert where.startswith(str(venv)), where
    hello = ROOT / "examples/python/hello.py"
    assert "w is 55.0 55.0 55.0" in run(python, hello)
    assert "commit" in run(venv / "bin/capstan", "--version", PATH=path)
    job = run("capstan", "run", "--ps", "1", "--workers", "2", "--", python, hello, PATH=path)
    assert "w is 55.0 55.0 55.0" in job, job
    print("the wheel works in one process and in a job")
    if options.python:
        binaries = str(options.build.resolve() / "bin")
        for name in FILES:
            print(name, run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{name}.py", cwd=ROOT / "tests/python",
                            PYTHONDONTWRITEBYTECODE="1", CAPSTAN_TESTS_BIN=binaries).splitlines()[-1])
