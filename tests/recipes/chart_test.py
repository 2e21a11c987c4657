#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Is the Helm chart what docs/recipes/kubernetes.md says: no privileged pod, nothing of the host's, keys as chosen?

By `helm template` where there is a helm; else by the part of Go's templates the chart keeps to, rendered here (anything
else in a template is an error). Ends with 77 without PyYAML. Usage: chart_test.py CHART_DIR"""

import copy
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Tuple

try:
    import yaml
except ImportError:
    print("the chart was NOT rendered: no PyYAML here")
    sys.exit(77)

Values = Dict[str, Any]
TOKEN = re.compile(r"(\s*)\{\{(-?)\s*(.*?)\s*(-?)\}\}(\s*)", re.S)


def look_up(path: str, scope: Values, dot: Any) -> Any:
    if path == ".":
        return dot
    value: Any = scope
    for name in path[1:].split("."):
        value = value[name]  # a value that is not there is an error, unlike Helm's
    return value


def quoted(value: Any) -> str:
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def evaluate(expression: str, scope: Values, dot: Any) -> str:
    first, *filters = [part.strip() for part in expression.split("|")]
    if first.startswith("toYaml "):
        value: Any = yaml.safe_dump(look_up(first[7:], scope, dot)).rstrip("\n")
    else:
        value = look_up(first, scope, dot)
    for one in filters:
        if one == "quote":
            value = quoted(value)
        elif one.startswith("nindent "):
            value = "\n" + "\n".join(" " * int(one[8:]) + line for line in str(value).split("\n"))
        else:
            raise SystemExit(f"the test knows no '{one}': {expression}")
    return str(value)


def tokens(text: str) -> List[Tuple[str, str]]:
    """Text and actions in turn, spaces taken away where a dash says so."""
    out: List[Tuple[str, str]] = []
    at = 0
    for match in TOKEN.finditer(text):
        before, left, action, right, after = match.groups()
        out.append(("text", text[at : match.start()] + ("" if left else before)))
        out.append(("action", action))
        at = match.end() if right else match.end() - len(after)
    return out + [("text", text[at:])]


def render(parts: List[Tuple[str, str]], scope: Values, dot: Any) -> str:
    out = ""
    while parts:
        kind, text = parts.pop(0)
        if kind == "text":
            out += text
            continue
        word, _, rest = text.partition(" ")
        if word == "end":
            return out
        if word == "if":
            inside = render(parts, scope, dot)
            out += inside if look_up(rest, scope, dot) else ""
        elif word == "range":
            body = None
            for one in look_up(rest, scope, dot):
                body = copy.copy(parts)
                out += render(body, scope, one)
            if body is None:
                render(parts, scope, "")
            else:
                parts[:] = body
        else:
            out += evaluate(text, scope, dot)
    return out


def merged(base: Values, over: Values) -> Values:
    out = copy.deepcopy(base)
    for key, value in over.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def manifests(chart: str, over: Values) -> List[Values]:
    if shutil.which("helm"):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(over, file)
            file.flush()
            text = subprocess.check_output(["helm", "template", "job", chart, "-f", file.name], text=True)
        return [one for one in yaml.safe_load_all(text) if one]
    with open(os.path.join(chart, "values.yaml"), encoding="utf-8") as file:
        scope = {"Values": merged(yaml.safe_load(file), over), "Release": {"Name": "job"}}
    found = []
    for name in sorted(os.listdir(os.path.join(chart, "templates"))):
        with open(os.path.join(chart, "templates", name), encoding="utf-8") as file:
            found += list(yaml.safe_load_all(render(tokens(file.read()), scope, None)))
    return [one for one in found if one]


def expect(right: bool, what: str) -> None:
    if not right:
        raise SystemExit(f"the chart is not as it should be: {what}")


def pod_of(chart: str, over: Values) -> Values:
    deployment = [one for one in manifests(chart, over) if one["kind"] == "Deployment"]
    expect(len(deployment) == 1, "one deployment")
    labels = deployment[0]["spec"]["template"]["metadata"]["labels"]
    chosen = deployment[0]["spec"]["selector"]["matchLabels"]
    expect(chosen.items() <= labels.items(), "the selector chooses its pods")
    pod: Values = deployment[0]["spec"]["template"]
    for container in pod["spec"]["containers"]:
        rights = container["securityContext"]
        expect(rights["privileged"] is False and rights["allowPrivilegeEscalation"] is False, "no privileged container")
        expect(rights["capabilities"] == {"drop": ["ALL"]}, "no capabilities")
        mounts = {one["name"] for one in container["volumeMounts"]}
        expect(mounts <= {one["name"] for one in pod["spec"]["volumes"]}, "every mount has a volume")
    for volume in pod["spec"]["volumes"]:
        expect("hostPath" not in volume, "nothing of the host's")
    for key in ("hostPID", "hostIPC", "hostNetwork"):
        expect(key not in pod["spec"], "nothing of the host's")
    return pod


def environment(pod: Values) -> Dict[str, str]:
    return {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"] or []}


def main(chart: str) -> None:
    pod = pod_of(chart, {})
    program, exporter = pod["spec"]["containers"]
    expect(program["args"] == ["--metrics", "/metrics", "--", "vllm", "serve", "MODEL"], f"arguments: {program['args']}")
    expect(program["resources"]["limits"]["nvidia.com/gpu"] == 1, "a GPU")
    expect("SEALANE_KEY_FILE" not in environment(pod), "no key unless one is named")
    expect(pod["metadata"]["annotations"]["prometheus.io/port"] == str(exporter["ports"][0]["containerPort"]), "scraped")

    pod = pod_of(chart, {"key": {"secret": "job"}, "runFlags": ["--enable", "engine,parallel"], "command": ["a b", 'c"']})
    expect(pod["spec"]["containers"][0]["args"][2:] == ["--enable", "engine,parallel", "--", "a b", 'c"'], "flags")
    expect(environment(pod)["SEALANE_KEY_FILE"] == "/keys/group.key", "a key from the Secret")
    expect(environment(pod)["SEALANE_KEY_GROUP"] == str(pod["spec"]["securityContext"]["fsGroup"]), "who may read it")
    secret = [one["secret"] for one in pod["spec"]["volumes"] if "secret" in one]
    # 0440 in YAML 1.1, which Helm and this parser read: an octal number
    expect(secret == [{"secretName": "job", "defaultMode": 0o440}], f"the Secret's volume: {secret}")

    pod = pod_of(chart, {"key": {"broker": "kbs:///a/b/c"}, "metrics": {"enabled": False}})
    expect(environment(pod)["SEALANE_KEY_FILE"] == "kbs:///a/b/c", "a key from the broker")
    expect(len(pod["spec"]["containers"]) == 1 and "annotations" not in pod["metadata"], "no metrics")
    expect(pod["spec"]["containers"][0]["args"] == ["--", "vllm", "serve", "MODEL"], "no --metrics")

    kinds = [one["kind"] for one in manifests(chart, {"metrics": {"podMonitor": True}})]
    expect(sorted(kinds) == ["Deployment", "PodMonitor"], f"kinds: {kinds}")
    print("the chart renders, by " + ("helm" if shutil.which("helm") else "the test's own reader of templates"))


if __name__ == "__main__":
    main(sys.argv[1])
