#!/usr/bin/env python3
"""sbom.py -- prints the software bill of materials of a source archive as SPDX 2.3 JSON.

The archive contains no code of other projects. So the document lists Capstan and its direct dependencies, which a site
provides. Their versions are those of the site: the document has only the minimum that the build requires.
"""
import argparse
import hashlib
import json
import pathlib
import re

# A dependency's name in CMake or pyproject.toml, its project, license, minimum version, and relationship to Capstan.
# NOASSERTION: the license depends on the implementation that the site has selected, or has no SPDX identifier.
DEPENDENCIES = [
    ("MPI", "MPI: Open MPI, MPICH or another implementation", "NOASSERTION", None, "DEPENDS_ON"),
    ("UCX", "UCX", "BSD-3-Clause", "1.13", "DEPENDS_ON"),
    ("HDF5", "HDF5", "BSD-3-Clause", "1.10", "DEPENDS_ON"),
    ("HWLOC", "hwloc", "BSD-3-Clause", "2.1", "DEPENDS_ON"),
    ("OPENBLAS", "OpenBLAS", "BSD-3-Clause", None, "DEPENDS_ON"),
    ("HWY", "Highway", "Apache-2.0", None, "DEPENDS_ON"),
    ("XXHASH", "xxHash", "BSD-2-Clause", None, "DEPENDS_ON"),
    ("ZLIB", "zlib", "Zlib", None, "DEPENDS_ON"),
    ("fmt", "fmt", "MIT", "9", "DEPENDS_ON"),
    ("spdlog", "spdlog", "MIT", "1.10", "DEPENDS_ON"),
    ("CLI11", "CLI11", "BSD-3-Clause", "2", "DEPENDS_ON"),
    ("nlohmann_json", "JSON for Modern C++", "MIT", "3.11", "DEPENDS_ON"),
    ("tomlplusplus", "toml++", "MIT", "3", "DEPENDS_ON"),
    ("HTTPLIB", "cpp-httplib", "MIT", "0.11", "OPTIONAL_DEPENDENCY_OF"),
    ("CUDAToolkit", "NVIDIA CUDA Toolkit", "NOASSERTION", None, "OPTIONAL_DEPENDENCY_OF"),
    ("NCCL", "NVIDIA NCCL", "BSD-3-Clause", None, "OPTIONAL_DEPENDENCY_OF"),
    ("numpy", "NumPy", "BSD-3-Clause", "1.24", "OPTIONAL_DEPENDENCY_OF"),
    ("cloudpickle", "cloudpickle", "BSD-3-Clause", "2.2", "OPTIONAL_DEPENDENCY_OF"),
    ("nanobind", "nanobind", "BSD-3-Clause", "2.4", "BUILD_DEPENDENCY_OF"),
    ("scikit-build-core", "scikit-build-core", "Apache-2.0", "0.10", "BUILD_DEPENDENCY_OF"),
    ("GTest", "GoogleTest", "BSD-3-Clause", None, "TEST_DEPENDENCY_OF"),
]


def package(name, spdx_id, license_id, **more):
    return {
        "name": name, "SPDXID": spdx_id, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION", "licenseDeclared": license_id, "copyrightText": "NOASSERTION", **more,
    }  # fmt: skip


def document(archive, commit, created):
    """Returns the SPDX document of an archive that is named capstan-VERSION.tar.gz."""
    version = re.fullmatch(r"capstan-(.+)\.tar\.gz", archive.name)
    if not version:
        raise SystemExit(f"sbom.py: found the archive {archive.name}, expected capstan-VERSION.tar.gz")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    capstan = "SPDXRef-capstan"
    packages = [
        package(
            "capstan", capstan, "Apache-2.0", versionInfo=version[1], packageFileName=archive.name, sourceInfo=f"Git commit {commit}",
            primaryPackagePurpose="LIBRARY", checksums=[{"algorithm": "SHA256", "checksumValue": digest}],
        )
    ]  # fmt: skip
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", capstan)]
    for name, project, license_id, minimum, relation in DEPENDENCIES:
        spdx_id = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]", "-", name)
        more = {"comment": f"provided by the site; version {minimum} or later"} if minimum else {"comment": "provided by the site"}
        packages.append(package(project, spdx_id, license_id, **more))
        relations.append((capstan, relation, spdx_id) if relation == "DEPENDS_ON" else (spdx_id, relation, capstan))
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"capstan-{version[1]}",
        "documentNamespace": f"urn:capstan:spdx:{version[1]}:{commit}",
        "creationInfo": {"created": created, "creators": ["Tool: launch/release", "Organization: The Capstan contributors"]},
        "packages": packages,
        "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in relations],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=pathlib.Path, required=True, help="the file capstan-VERSION.tar.gz")
    parser.add_argument("--commit", required=True, help="the commit of the archive")
    parser.add_argument("--created", required=True, help="time of the document, as YYYY-MM-DDThh:mm:ssZ")
    arguments = parser.parse_args()
    print(json.dumps(document(arguments.archive, arguments.commit, arguments.created), indent=2))


if __name__ == "__main__":
    main()
