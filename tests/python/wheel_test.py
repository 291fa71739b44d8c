#!/usr/bin/env python3
"""wheel_test.py BUILD -- builds a wheel against an installed Capstan, and uses it in a fresh environment outside the tree.

Run by the interpreter that has nanobind and scikit-build-core.
"""
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()


def run(*words, **more):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    done = subprocess.run([str(word) for word in words], env=environment, cwd=scratch, capture_output=True, text=True, timeout=280)
    if done.returncode != 0:
        sys.exit(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


with tempfile.TemporaryDirectory() as scratch:
    prefix, wheels, venv = (pathlib.Path(scratch, name) for name in ("prefix", "wheels", "venv"))
    run("cmake", "--install", BUILD, "--prefix", prefix)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir", wheels,
        "--config-settings", f"build-dir={scratch}/build", ROOT, CMAKE_PREFIX_PATH=str(prefix))
    run(sys.executable, "-m", "venv", venv)
    # numpy and cloudpickle come from the environment of this interpreter.
    site = next(venv.glob("lib/python*/site-packages"))
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    run(venv / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", *wheels.glob("capstan-*.whl"))
    path = f"{prefix / 'bin'}:{os.environ['PATH']}"
    where = run(venv / "bin/python", "-c", "import capstan; print(capstan.__file__)")
    assert where.startswith(str(venv)), where
    assert "w is 55.0 55.0 55.0" in run(venv / "bin/python", ROOT / "examples/python/hello.py")
    assert "commit" in run(venv / "bin/capstan", "--version", PATH=path)
    job = run("capstan", "run", "--ps", "1", "--workers", "2", "--", venv / "bin/python", ROOT / "examples/python/hello.py", PATH=path)
    assert "w is 55.0 55.0 55.0" in job, job
    print("the wheel works in one process and in a job")
