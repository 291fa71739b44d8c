#!/usr/bin/env python3
"""Checks the recipes of launch/packaging, the batch scripts of launch/slurm, and the files about license and citation without
the tools that read them.

The recipes name the version in CMakeLists.txt and every dependency in cmake/CapstanDependencies.cmake. Syntax is checked by
compiling (Python), with `bash -n` and, if installed, shellcheck (shell), and by counting braces (Tcl).
"""
import ast
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "launch" / "packaging"
SCRIPTS = sorted((ROOT / "launch" / "slurm").glob("*.sbatch"))
VERSION = re.search(r"project\(capstan VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]

# CMake's name: (Spack's name, EasyBuild's name). None: part of the toolchain, optional, or needed by tests only.
NAMES = {
    "Threads": (None, None), "PkgConfig": ("pkgconfig", "pkgconf"), "MPI": ("mpi", None), "HDF5": ("hdf5", "HDF5"), "fmt": ("fmt", "fmt"),
    "spdlog": ("spdlog", "spdlog"), "CLI11": ("cli11", "CLI11"), "nlohmann_json": ("nlohmann-json", "nlohmann_json"),
    "tomlplusplus": ("tomlplusplus", "tomlplusplus"), "TOMLPP": ("tomlplusplus", "tomlplusplus"), "UCX": ("ucx", "UCX"),
    "HWLOC": ("hwloc", "hwloc"), "OPENBLAS": ("openblas", None), "HWY": ("highway", "Highway"), "XXHASH": ("xxhash", "xxHash"),
    "ZLIB": ("zlib-api", "zlib"), "HTTPLIB": (None, None), "GTest": ("googletest", None),
}  # fmt: skip


def dependencies():
    text = (ROOT / "cmake" / "CapstanDependencies.cmake").read_text()
    return {name for name in re.findall(r"(?:find_package|pkg_check_modules)\((\w+)", text)}


class Recipes(unittest.TestCase):
    def assert_all_named(self, named, column):
        for name in dependencies():
            self.assertIn(name, NAMES, "unknown dependency; add it to the recipes and to NAMES")
            if expected := NAMES[name][column]:
                self.assertIn(expected, named)

    def test_spack(self):
        path = PACKAGING / "spack" / "packages" / "capstan" / "package.py"
        tree = ast.parse(path.read_text(), path)
        (recipe,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        self.assertEqual(recipe.name, "Capstan")
        calls = [node.value for node in recipe.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
        first = [(call.func.id, call.args[0].value) for call in calls if call.args]
        self.assertIn(("version", VERSION), first)
        self.assert_all_named({re.split(r"[@ +~]", value)[0] for name, value in first if name == "depends_on"}, 0)
        # Every option that the recipe sets exists.
        options = set(re.findall(r"option\((CAPSTAN_\w+)", (ROOT / "CMakeLists.txt").read_text()))
        options |= set(re.findall(r"capstan_request\((CAPSTAN_\w+)", (ROOT / "cmake" / "CapstanCuda.cmake").read_text()))
        self.assertLessEqual(set(re.findall(r'"(CAPSTAN_\w+)"', path.read_text())), options)

    def test_spack_environment(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("the Python module yaml is not installed")
        environment = yaml.safe_load((PACKAGING / "spack" / "spack.yaml").read_text())["spack"]
        self.assertTrue(environment["specs"][0].startswith("capstan"))
        self.assertEqual(environment["develop"]["capstan"]["spec"], f"capstan@{VERSION}")
        path = PACKAGING / "spack" / environment["develop"]["capstan"]["path"]
        self.assertEqual(path.resolve(), ROOT)
        self.assertEqual(yaml.safe_load((PACKAGING / "spack" / "repo.yaml").read_text())["repo"]["namespace"], "capstan")

    def test_easybuild(self):
        (path,) = PACKAGING.glob("capstan-*.eb")
        recipe = {}
        exec(compile(path.read_text(), path, "exec"), {}, recipe)  # a list of Python assignments
        self.assertEqual((recipe["name"], recipe["version"]), ("capstan", VERSION))
        toolchain = "{name}-{version}".format(**recipe["toolchain"])
        self.assertEqual(path.name, f"capstan-{VERSION}-{toolchain}.eb")
        self.assert_all_named({name for name, _ in recipe["builddependencies"] + recipe["dependencies"]}, 1)
        for key in ("easyblock", "homepage", "description", "sources", "sanity_check_paths", "moduleclass"):
            self.assertTrue(recipe[key], key)

    def test_modulefile(self):
        text = (PACKAGING / "modulefiles" / "capstan").read_text()
        self.assertTrue(text.startswith("#%Module1.0\n"))
        self.assertIn(f"set version {VERSION}\n", text)
        lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
        code = "\n".join(lines)
        for opening, closing in ("{}", "[]"):
            self.assertEqual(code.count(opening), code.count(closing))
        self.assertEqual(code.count('"') % 2, 0)
        commands = {line.split()[0] for line in lines if not line.startswith((" ", "}"))}
        self.assertLessEqual(commands, {"set", "proc", "module-whatis", "conflict", "prereq", "setenv", "prepend-path"})
        # Every path is below the prefix of the installation, which follows from the location of the file.
        self.assertIn("[file normalize $ModulesCurrentModulefile]", code)
        self.assertEqual(re.findall(r"^prepend-path \w+ (?!\$prefix)", code, re.MULTILINE), [])
        self.assertNotRegex(code, r"[\s\"]/")
        # Capstan rejects an unknown CAPSTAN_ variable.
        self.assertNotRegex(code, r"setenv\s+CAPSTAN_")

    def test_apptainer(self):
        text = (PACKAGING / "capstan.def").read_text()
        self.assertRegex(text, r"(?m)^Bootstrap: docker\nFrom: debian:")
        sections = re.findall(r"(?m)^%(\w+)", text)
        self.assertEqual(sections, ["files", "post", "environment", "test", "runscript", "labels"])
        self.assertIn(f"Version {VERSION}\n", text)
        for section in ("post", "environment", "test", "runscript"):
            body = re.search(rf"(?ms)^%{section}\n(.*?)(?=^%|\Z)", text)[1]
            done = subprocess.run(["sh", "-n"], input=body, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), section)


class Metadata(unittest.TestCase):
    def test_citation(self):
        text = (ROOT / "CITATION.cff").read_text()
        self.assertEqual(re.findall(r"(?m)^version: (\S+)$", text), [VERSION])
        self.assertEqual(re.findall(r"(?m)^license: (\S+)$", text), ["Apache-2.0"])
        for key in ("cff-version", "message", "title", "authors"):  # the keys that the format requires
            self.assertRegex(text, rf"(?m)^{key}:", key)

    def test_license_of_every_file(self):
        text = (ROOT / "REUSE.toml").read_text()
        self.assertIn('path = "**"\n', text)
        used = set(re.findall(r'SPDX-License-Identifier = "(\S+)"', text))
        self.assertEqual(used, {path.stem for path in (ROOT / "LICENSES").iterdir()})
        self.assertEqual((ROOT / "LICENSES" / "Apache-2.0.txt").read_text(), (ROOT / "LICENSE").read_text())
        if shutil.which("reuse"):
            done = subprocess.run(["reuse", "--root", ROOT, "lint"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)


class BatchScripts(unittest.TestCase):
    def test_shell_syntax(self):
        self.assertGreaterEqual(len(SCRIPTS), 6)
        for script in SCRIPTS:
            done = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), script.name)
        if shutil.which("shellcheck"):
            done = subprocess.run(["shellcheck", *SCRIPTS], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_sbatch_options(self):
        """Slurm ignores every #SBATCH line after the first command."""
        for script in SCRIPTS:
            lines = script.read_text().splitlines()
            self.assertTrue(lines[1].startswith(f"# {script.name} -- "), script.name)
            first_command = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
            options = [i for i, line in enumerate(lines) if line.startswith("#SBATCH")]
            self.assertLess(max(options), first_command, script.name)
            for name in ("--job-name=", "--time=", "--output="):
                self.assertTrue(any(lines[i].startswith(f"#SBATCH {name}") for i in options), f"{script.name}: {name}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
