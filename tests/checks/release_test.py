#!/usr/bin/env python3
"""Checks launch/release: the archive of a commit, its version and commit without Git, its SBOM, and the checksums.

Skips (exit code 77) outside of a Git work tree, such as in an extracted archive.
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "launch" / "packaging"))
from sbom import DEPENDENCIES  # noqa: E402


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)


def release(*arguments):
    return subprocess.run([ROOT / "launch" / "release", *arguments], capture_output=True, text=True, check=False)


def names_of_dependencies():
    """Returns the names that CMake and pyproject.toml give to the dependencies."""
    cmake = "".join((ROOT / "cmake" / f"Capstan{name}.cmake").read_text() for name in ("Dependencies", "Cuda"))
    names = {name for name in re.findall(r"(?:find_package|pkg_check_modules)\((\w+)", cmake)}
    python = (ROOT / "pyproject.toml").read_text()
    names |= set(re.findall(r'"([\w-]+)>=', python))
    return names - {"Threads", "PkgConfig", "TOMLPP"} | {"NCCL"}


COMMIT = git("rev-parse", "HEAD").stdout.strip()  # HEAD may move during the test
VERSION = re.search(r"project\(capstan VERSION (\S+)", git("show", f"{COMMIT}:CMakeLists.txt").stdout)[1]


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.output = pathlib.Path(cls.temporary.name)
        done = release("--output", cls.output, COMMIT)
        assert done.returncode == 0, done.stderr
        cls.archive = cls.output / f"capstan-{VERSION}.tar.gz"
        cls.sbom = json.loads((cls.output / f"capstan-{VERSION}.spdx.json").read_text())

    def test_archive_has_the_tracked_files_in_one_directory(self):
        with tarfile.open(self.archive) as archive:
            names = {member.name for member in archive.getmembers() if not member.isdir()}
        tracked = git("ls-tree", "-r", "--name-only", "-z", COMMIT).stdout.split("\0")
        self.assertEqual(names, {f"capstan-{VERSION}/{name}" for name in tracked if name})

    def test_archive_knows_its_commit_without_git(self):
        with tarfile.open(self.archive) as archive:
            archive.extractall(self.output)
        source = self.output / f"capstan-{VERSION}"
        script = self.output / "commit.cmake"
        script.write_text(f"set(PROJECT_SOURCE_DIR {source})\ninclude({source}/cmake/CapstanCommit.cmake)\nmessage(${{CAPSTAN_COMMIT}})\n")
        done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr.strip(), COMMIT[:12])

    def test_archive_of_a_commit_is_reproducible(self):
        with tempfile.TemporaryDirectory() as again:
            self.assertEqual(release("--output", again, COMMIT).returncode, 0)
            for path in self.output.glob(f"capstan-{VERSION}.*"):
                self.assertEqual((pathlib.Path(again) / path.name).read_bytes(), path.read_bytes(), path.name)

    def test_checksums(self):
        lines = (self.output / "SHA256SUMS").read_text().splitlines()
        self.assertEqual(len(lines), 4)
        for line in lines:
            digest, name = line.split()
            self.assertEqual(hashlib.sha256((self.output / name).read_bytes()).hexdigest(), digest)

    def test_recipes_have_the_checksum_of_the_archive(self):
        digest = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        spack = (self.output / f"capstan-{VERSION}.spack.py").read_text()
        self.assertIn(f'    version("{VERSION}", sha256="{digest}")\n', spack)
        self.assertIn(f'    url = f"file://{{os.path.dirname(__file__)}}/{self.archive.name}"\n', spack)
        (easyconfig,) = self.output.glob("*.eb")
        recipe = {}
        exec(compile(easyconfig.read_text(), easyconfig, "exec"), {}, recipe)  # a list of Python assignments
        self.assertEqual(recipe["checksums"], [digest])
        self.assertEqual(len(recipe["sources"]), 1)

    def test_sbom_describes_the_archive(self):
        self.assertEqual(self.sbom["spdxVersion"], "SPDX-2.3")
        capstan = self.sbom["packages"][0]
        self.assertEqual((capstan["name"], capstan["versionInfo"]), ("capstan", VERSION))
        self.assertIn(COMMIT, capstan["sourceInfo"])
        digest = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        self.assertEqual(capstan["checksums"], [{"algorithm": "SHA256", "checksumValue": digest}])

    def test_sbom_names_every_dependency(self):
        self.assertEqual({name for name, *_ in DEPENDENCIES}, names_of_dependencies())
        ids = [package["SPDXID"] for package in self.sbom["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        related = {item for relation in self.sbom["relationships"] for item in (relation["spdxElementId"], relation["relatedSpdxElement"])}
        self.assertEqual(related - {"SPDXRef-DOCUMENT"}, set(ids))

    def test_rejects_an_unknown_commit(self):
        done = release("--output", self.output, "no-such-commit")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no-such-commit", done.stderr)

    def test_rejects_an_unknown_option(self):
        self.assertEqual(release("--no-such-option").returncode, 2)


if __name__ == "__main__":
    if not (ROOT / ".git").exists():
        print(f"SKIP: {ROOT} is not a Git work tree")
        sys.exit(77)
    unittest.main(verbosity=2)
