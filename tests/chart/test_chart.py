"""The Helm chart, as it is rendered, and the container file; no cluster."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from harness.dashboards import GRAFANA, RULES
from harness.paths import ROOT

CHART = ROOT / "deploy/helm/tlsprof"
CONTAINERFILE = ROOT / "deploy/container/Containerfile"
UNIT = ROOT / "deploy/systemd/tlsprof.service"
TOOLS = ROOT / "target/tools"

SCHEMAS = next(TOOLS.glob("python/lib/*/site-packages/kubernetes_validate/kubernetes-json-schema"))
"""Of Kubernetes' objects, of each version; "strict" ones refuse unknown fields."""

KUBERNETES = ("1.25", "1.29", "1.30", "1.34")
"""The oldest that the chart allows, both sides of AppArmor's move to a field, and a recent one."""

EVERYTHING = {
    "config": '[agent]\nbudget = 0.02\n[profile]\nlibrary = "off"\n',
    "metrics": {"port": 9999, "webConfigSecret": "tlsprof-web"},
    "podMonitor": {
        "enabled": True,
        "scheme": "https",
        "tlsConfig": {"insecureSkipVerify": True},
        "nativeHistograms": True,
    },
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboards": {
        "enabled": True,
        "namespace": "grafana",
        "annotations": {"grafana_folder": "tlsprof"},
    },
    "hostNetwork": True,
    "otherNetworks": True,
    "replacedLibraries": True,
    "seLinuxOptions": {"type": "spc_t"},
    "priorityClassName": "system-node-critical",
    "imagePullSecrets": [{"name": "registry"}],
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "affinity": {"nodeAffinity": {}},
}
VALUES = {"default": {}, "everything": EVERYTHING}


def run(*command: object, text: str = "") -> subprocess.CompletedProcess:
    words = [str(word) for word in command]
    return subprocess.run(words, input=text, capture_output=True, text=True)


def render(
    values: dict[str, Any], version: str = KUBERNETES[-1], release: str = "test"
) -> subprocess.CompletedProcess:
    helm = [TOOLS / "bin/helm", "template", release, CHART, "--namespace=observing", "--values=-"]
    return run(*helm, f"--kube-version={version}.0", text=yaml.safe_dump(values))


SIDECAR = "grafana_dashboard"
"""The label by which the sidecar of Grafana's chart finds dashboards, as that chart has it by default."""


def rendered_objects(values: dict[str, Any], version: str = KUBERNETES[-1]) -> list[dict[str, Any]]:
    done = render(values, version)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def objects(values: dict[str, Any], version: str = KUBERNETES[-1]) -> dict[str, dict[str, Any]]:
    """What is rendered, by kind; without the dashboards."""
    every = rendered_objects(values, version)
    return {one["kind"]: one for one in every if SIDECAR not in one["metadata"]["labels"]}


def dashboards(values: dict[str, Any]) -> list[dict[str, Any]]:
    """ConfigMaps that the sidecar of Grafana finds."""
    return [one for one in rendered_objects(values) if one["metadata"]["labels"].get(SIDECAR) == "1"]


def container(values: dict[str, Any], version: str = KUBERNETES[-1]) -> dict[str, Any]:
    pod = objects(values, version)["DaemonSet"]["spec"]["template"]["spec"]
    (one,) = pod["containers"]
    return one


def problems(rendered: str, version: str) -> list[str]:
    """What the schemas of that version say against the objects; the operator's has none there."""
    folder = next(SCHEMAS.glob(f"v{version}*-local-strict"))
    definitions = json.loads((folder / "_definitions.json").read_text())
    found = []
    for one in yaml.safe_load_all(rendered):
        if one["apiVersion"].startswith("monitoring.coreos.com/"):
            continue
        # apps/v1 -> apps-v1, v1 -> v1; the domain of a group is left out.
        group = re.sub(r"^([^./]*)(\.[^/]*)?/", r"\1-", one["apiVersion"])
        schema = json.loads((folder / f"{one['kind'].lower()}-{group}.json").read_text())
        store = {"https://kubernetes.io/api/_definitions.json": definitions}
        resolver = jsonschema.RefResolver.from_schema(schema, store=store)
        validator = jsonschema.Draft202012Validator(schema, resolver=resolver)
        found += [f"{one['kind']}: {error.message}" for error in validator.iter_errors(one)]
    return found


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_helm_lint(values):
    done = run(TOOLS / "bin/helm", "lint", "--strict", CHART, "--values=-", text=json.dumps(values))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_objects_are_as_kubernetes_has_them(values, version):
    rendered = render(values, version).stdout
    assert rendered.count("\nkind: ") == (5 + len(list(GRAFANA.glob("*.json"))) if values else 3)
    assert not problems(rendered, version)


@pytest.mark.parametrize(
    "right, wrong",
    [("hostPID: true", "hostPid: true"), ("periodSeconds: 30", "periodSeconds: often")],
)
def test_a_mistake_would_be_found(right, wrong):
    rendered = render({}).stdout
    assert right in rendered
    assert problems(rendered.replace(right, wrong), KUBERNETES[-1])


def test_least_privilege():
    pod = objects({})["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["hostPID"] and not pod["hostNetwork"] and not pod["automountServiceAccountToken"]
    context = container({})["securityContext"]
    assert context["privileged"] is context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"]["drop"] == ["ALL"]
    assert "hostPath" not in json.dumps(pod)


def test_capabilities_are_those_of_the_unit_everywhere():
    unit = re.search(r"^CapabilityBoundingSet=(.*)$", UNIT.read_text(), re.M)
    assert unit
    expected = {name.removeprefix("CAP_") for name in unit[1].split()}
    assert set(container({})["securityContext"]["capabilities"]["add"]) == expected
    command = re.search(r"--cap-add=(\S+)", CONTAINERFILE.read_text())
    assert command and set(command[1].split(",")) == expected


def test_more_privileges_only_where_asked_for():
    default = set(container({})["securityContext"]["capabilities"]["add"])
    wanted = {"otherNetworks": "SYS_ADMIN", "replacedLibraries": "CHECKPOINT_RESTORE"}
    for key, capability in wanted.items():
        added = set(container({key: True})["securityContext"]["capabilities"]["add"])
        assert added - default == {capability}


def test_passwords_do_not_keep_the_kubelet_out():
    plain = container({})
    assert plain["livenessProbe"]["httpGet"]["path"] == "/-/healthy"
    assert plain["readinessProbe"]["httpGet"]["path"] == "/-/ready"
    protected = container({"metrics": {"webConfigSecret": "web"}})
    assert "tcpSocket" in protected["livenessProbe"] and "tcpSocket" in protected["readinessProbe"]
    assert "--web-config=/etc/tlsprof/web/web.yml" in protected["args"]


@pytest.mark.parametrize(
    "profile, annotated",
    [
        ({"type": "Unconfined"}, "unconfined"),
        ({"type": "RuntimeDefault"}, "runtime/default"),
        ({"type": "Localhost", "localhostProfile": "tlsprof"}, "localhost/tlsprof"),
    ],
)
def test_apparmor_by_annotation_before_it_was_a_field(profile, annotated):
    values = {"appArmorProfile": profile}
    old = objects(values, "1.29")["DaemonSet"]["spec"]["template"]
    annotation = "container.apparmor.security.beta.kubernetes.io/tlsprof"
    assert old["metadata"]["annotations"][annotation] == annotated
    assert "appArmorProfile" not in json.dumps(old["spec"])
    new = container(values, "1.30")
    assert new["securityContext"]["appArmorProfile"] == profile


def test_by_default_apparmor_does_not_confine():
    assert container({})["securityContext"]["appArmorProfile"] == {"type": "Unconfined"}


def test_configuration_arrives_and_its_change_restarts():
    one, other = objects(EVERYTHING), objects({})
    assert one["ConfigMap"]["data"]["tlsprof.toml"] == EVERYTHING["config"]
    sums = {
        each["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        for each in (one, other)
    }
    assert len(sums) == 2


def test_job_has_the_name_that_dashboards_know():
    endpoint = objects(EVERYTHING)["PodMonitor"]["spec"]["podMetricsEndpoints"][0]
    assert {"targetLabel": "job", "replacement": "tlsprof"} in endpoint["relabelings"]
    ports = container(EVERYTHING)["ports"]
    assert {"name": endpoint["port"], "containerPort": 9999} in ports


def test_native_histograms_are_asked_for_where_the_operator_knows_them():
    """As in `scrape_native_histograms` of a job."""
    assert objects(EVERYTHING)["PodMonitor"]["spec"]["scrapeNativeHistograms"] is True
    assert "scrapeNativeHistograms" not in objects({"podMonitor": {"enabled": True}})["PodMonitor"]["spec"]


def test_the_rules_are_those_of_the_tree():
    rule = objects(EVERYTHING)["PrometheusRule"]
    files = [yaml.safe_load(path.read_text()) for path in sorted(RULES.glob("*.rules.yml"))]
    assert rule["spec"]["groups"] == [group for file in files for group in file["groups"]]
    assert rule["metadata"]["labels"]["release"] == "prometheus"


def test_the_dashboards_are_those_of_the_tree():
    found = dashboards(EVERYTHING)
    texts = {name: text for one in found for name, text in one["data"].items()}
    wanted = {path.name: json.loads(path.read_text()) for path in GRAFANA.glob("*.json")}
    assert {name: json.loads(text) for name, text in texts.items()} == wanted
    assert len({one["metadata"]["name"] for one in found}) == len(wanted)
    assert {one["metadata"]["namespace"] for one in found} == {"grafana"}
    assert {one["metadata"]["annotations"]["grafana_folder"] for one in found} == {"tlsprof"}


def test_dashboards_go_where_the_release_is():
    found = dashboards({"dashboards": {"enabled": True}})
    assert {one["metadata"]["namespace"] for one in found} == {"observing"}


def test_names_fit_whatever_the_release_is_called():
    """As labels they have 63 characters at most."""
    done = render({"dashboards": {"enabled": True}}, release="a" * 53)
    names = [one["metadata"]["name"] for one in yaml.safe_load_all(done.stdout) if one]
    assert names and max(map(len, names)) <= 63


@pytest.mark.parametrize("wrong", [{"hostNetwrok": True}, {"metrics": {"port": "x"}}, {"appArmorProfile": {"type": "unconfined"}}])
def test_wrong_values_are_refused(wrong):
    done = render(wrong)
    assert done.returncode != 0 and "schema" in done.stderr


def test_versions_are_those_of_the_program():
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)
    toolchain = re.search(r'^channel = "(.*)"$', (ROOT / "rust-toolchain.toml").read_text(), re.M)
    assert version and toolchain
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == version[1]
    assert f"ARG RUST={toolchain[1]}\n" in CONTAINERFILE.read_text()


def test_container_file():
    done = run(TOOLS / "python/bin/hadolint", CONTAINERFILE)
    assert done.returncode == 0, done.stdout
    ignored = Path(f"{CONTAINERFILE}.dockerignore").read_text().split()
    # What the build reads, and no more of the repository.
    assert {"!agent", "!bpf", "!docs/findings", "!Cargo.lock", "!rust-toolchain.toml"} <= set(ignored)
