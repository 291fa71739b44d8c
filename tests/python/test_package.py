"""The package: public names, errors, the command-line program, and processes that exit without closing objects."""
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import capstan as cs

PROGRAM = """
import numpy as np
import capstan as cs
strategy = cs.ParameterServerStrategy(cs.Cluster.join(log_level="error"))
with strategy.scope():
    v = cs.Variable(np.zeros(3), name="v")
coordinator = cs.ClusterCoordinator(strategy)
value = coordinator.schedule(lambda: 5)
iterator = iter(coordinator.create_per_worker_dataset(lambda: [1, 2]))
print(coordinator.schedule(next, (iterator,)).fetch())
"""


def run(*words, **options):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("module", [cs, cs.cluster_resolver, cs.data, cs.errors, cs.metrics], ids=lambda module: module.__name__)
def test_every_public_name_is_documented(module):
    for name in getattr(module, "__all__", [name for name in vars(module) if name.endswith("Error")]):
        value = getattr(module, name)
        if name in ("__version__", "AUTOTUNE"):
            continue
        assert inspect.getdoc(value), name
        if inspect.isclass(value):
            for method, function in vars(value).items():
                if not method.startswith("_") and callable(function):
                    assert inspect.getdoc(getattr(value, method)), f"{name}.{method}"


def test_codes_are_those_of_the_library():
    assert sorted(error.code for error in cs.errors.CapstanError.__subclasses__()) == list(range(1, 16))
    assert isinstance(cs.errors.exception_of_code(3, "m"), ValueError)
    assert cs.errors.exception_of_code(99, "m").code == cs.errors.UnknownError.code


def test_every_setting_of_the_library_is_a_keyword():
    header = (pathlib.Path(__file__).resolve().parents[2] / "include/capstan/cluster.hpp").read_text()
    fields = header.partition("struct ClusterOptions {")[2].partition("\n};")[0]
    names = re.findall(r"^  [\w:]+ (\w+)(?= =|\{)", fields, re.MULTILINE)
    assert len(names) > 40
    assert set(names) == {name for name in dir(cs._capstan.ClusterOptions) if not name.startswith("_")}


def test_unknown_settings_are_named():
    with pytest.raises(TypeError, match="'number_of_ps'"):
        cs._capstan.needs_agent({"number_of_ps": 1}, [])


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "del strategy", "import gc; gc.collect()", "strategy.close()"])
def test_a_script_ends_cleanly_with_everything_alive(end):
    done = run("-c", PROGRAM + end)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_an_exception_ends_the_script():
    done = run("-c", PROGRAM + "raise ValueError('mine')")
    assert done.returncode == 1 and done.stderr.rstrip().endswith("ValueError: mine")


def test_arguments_with_settings_are_removed():
    done = run("-c", "import sys, capstan; capstan.Cluster.join(); print(sys.argv)", "--capstan-ps=2", "--mine")
    assert done.stdout == "['-c', '--mine']\n", done.stderr


def test_join_works_after_numpy_has_started_threads():
    text = "import numpy as np; a = np.ones((300, 300)); a @ a\n" + PROGRAM
    assert run("-c", text).stdout == "1\n"


def test_module_runs_the_command_line_program():
    capstan = os.environ.get("CAPSTAN_TESTS_BIN")
    done = run("-m", "capstan", "--version", env={**os.environ, "PATH": f"{capstan}:{os.environ['PATH']}"})
    assert done.returncode == 0 and cs.__version__ in done.stdout


def test_build_info_names_version_and_commit():
    info = cs.build_info()
    assert info["version"] == cs.__version__
    assert re.fullmatch(r"[0-9a-f]{12}|unknown", info["commit"])
    assert info["compiler"] and "CAPSTAN_BUILD_PYTHON=" in info["cmake_options"]


def test_import_does_not_load_cloudpickle():
    done = run("-X", "importtime", "-c", "import capstan")
    assert done.returncode == 0
    assert "cloudpickle" not in done.stderr, "imported only for functions that are sent by value"
