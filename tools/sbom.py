#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""What a build is made of, as SPDX 2.3 JSON. Usage: sbom.py BUILD_DIR

Every library a program or library of the build needs, with the Debian package and version it comes
from, and the packages of what is compiled in: headers, static libraries, the chart library of the page."""

import datetime
import json
import os
import re
import subprocess
import sys

COMPILED_IN = ("nlohmann-json3-dev", "libcli11-dev", "libtomlplusplus-dev", "libfmt-dev", "libipsec-mb-dev",
               "libjs-chart.js", "libstdc++-12-dev", "libgcc-12-dev", "pybind11-dev")


def output(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout if result.returncode == 0 else ""


def needed(path: str) -> set[str]:
    """Absolute paths of the shared libraries the file is loaded with."""
    return set(re.findall(r"=> (/\S+)", output("ldd", path)))


def package_of(path: str) -> str:
    for candidate in (path, os.path.realpath(path), path.removeprefix("/usr")):
        owner = output("dpkg-query", "-S", candidate)
        if owner:
            return owner.split(":")[0]
    return ""


def main() -> None:
    build = sys.argv[1]
    products = [os.path.join(build, "bin/sealane")]
    for top in ("lib", "lib/sealane"):
        directory = os.path.join(build, top)
        products += [os.path.join(directory, name) for name in sorted(os.listdir(directory)) if ".so" in name]
    packages = {package_of(library) for product in products if os.path.isfile(product) for library in needed(product)}
    packages |= {name for name in COMPILED_IN if output("dpkg-query", "-W", name)}
    packages.discard("")

    cache = open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8").read()
    version = re.search(r"CMAKE_PROJECT_VERSION:STATIC=(\S+)", cache).group(1)
    when = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)

    def entry(name: str, number: str, supplier: str, licence: str) -> dict[str, object]:
        return {
            "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
            "name": name,
            "versionInfo": number,
            "supplier": supplier,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": licence,
            "licenseDeclared": licence,
        }

    listed = [entry("sealane", version, "Organization: The Sealane authors", "Apache-2.0")]
    for name in sorted(packages):
        number = output("dpkg-query", "-W", "-f", "${Version}", name)
        listed.append(entry(name, number, "Organization: Debian", "NOASSERTION"))
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"sealane-{version}",
        "documentNamespace": f"urn:sealane:{version}",
        "creationInfo": {"created": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: sealane-sbom"]},
        "packages": listed,
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": "SPDXRef-sealane",
            }
        ]
        + [
            {
                "spdxElementId": "SPDXRef-sealane",
                "relationshipType": "DEPENDS_ON",
                "relatedSpdxElement": one["SPDXID"],
            }
            for one in listed[1:]
        ],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
