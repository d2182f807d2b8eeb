#!/usr/bin/env python3
"""Compares the rendered chart with the plain manifests, and checks the effect of its values.

    contrib/kubernetes/check.py HELM [TYPES]

TYPES is the program built from types/, which checks every rendering. Ends with `N passed, N failed,
0 skipped`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

HELM, *TYPES = sys.argv[1:]
HERE = Path(__file__).resolve().parent
CHART = str(HERE / "chart")
NAMESPACE = "holdfast-csi"
# The version of the cluster, which a helm built by `go install` does not know.
KUBERNETES = "1.30.0"
ARRAY = {"array": {"api": "https://example.com:3280", "ca": "PEM", "token": "T"}}


def helm(*arguments, **values):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        return subprocess.run(
            [HELM, *arguments, CHART, "--values", file.name, "--namespace", NAMESPACE],
            capture_output=True, text=True, check=False,
        )


def typed(text):
    for program in TYPES:
        done = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def by_name(documents):
    found = {}
    for one in documents:
        if one:
            key = (one["kind"], one["metadata"]["name"])
            assert key not in found, f"{key} twice"
            found[key] = one
    return found


def rendered(**values):
    done = helm("template", "--kube-version", KUBERNETES, "holdfast", **{**ARRAY, **values})
    assert done.returncode == 0, done.stderr
    typed(done.stdout)
    return by_name(yaml.safe_load_all(done.stdout))


def plain():
    """Returns the plain manifests with the names of images, like `kubectl apply -k`."""
    kustomization = yaml.safe_load((HERE / "kustomization.yaml").read_text())
    texts = [(HERE / name).read_text() for name in kustomization["resources"]]
    typed("\n---\n".join(texts))
    images = {
        image["name"]: f"{image['newName']}:{image['newTag']}"
        for image in kustomization["images"]
    }
    found = by_name(one for text in texts for one in yaml.safe_load_all(text))
    for one in found.values():
        for container in containers(one):
            container["image"] = images[container["image"]]
    return found


def containers(workload):
    template = workload.get("spec", {}).get("template")
    return template["spec"]["containers"] if template else []


def container(documents, kind, name):
    workload = next(one for (of, _), one in documents.items() if of == kind)
    return next(one for one in containers(workload) if one["name"] == name)


def helm_lint_succeeds():
    done = helm("lint", "--strict", **ARRAY)
    assert done.returncode == 0, done.stdout + done.stderr


def the_chart_renders_the_plain_manifests():
    manifests = plain()
    data = manifests["ConfigMap", "array"]["data"]
    token = manifests["Secret", "array"]["stringData"]["token"]
    found = rendered(array={"api": data["api"], "ca": data["ca.pem"], "token": token})
    # helm creates the namespace itself.
    del manifests["Namespace", NAMESPACE]
    assert found.keys() == manifests.keys(), found.keys() ^ manifests.keys()
    for key, one in manifests.items():
        assert found[key] == one, f"{key}:\n{found[key]}\n{one}"


def invalid_values_are_refused():
    array = ARRAY["array"]
    for values in (
        {"array": {}},
        {"array": {**array, "api": "http://example.com:3280"}},
        {"array": {**array, "existingSecret": "s"}},
        {"array": {**array, "token": ""}},
        {**ARRAY, "storageClasses": [{"name": "a", "filesystem": "ntfs"}]},
        {**ARRAY, "prefix": "With Space"},
        {**ARRAY, "controler": {"replicas": 3}},
        {**ARRAY, "controller": {"replicas": 0}},
    ):
        done = helm("template", "--kube-version", KUBERNETES, "holdfast", **values)
        assert done.returncode != 0 and "values don't meet" in done.stderr, (values, done.stderr)


def an_existing_secret_is_used():
    found = rendered(array={**ARRAY["array"], "token": "", "existingSecret": "mine"})
    assert ("Secret", "array") not in found
    volumes = found["Deployment", "controller"]["spec"]["template"]["spec"]["volumes"]
    sources = next(one for one in volumes if one["name"] == "array")["projected"]["sources"]
    assert {"secret": {"name": "mine"}} in sources, sources


def all_containers_get_the_topology():
    found = rendered(segment="room-1", prefix="blue-")
    assert "--segment=room-1" in container(found, "Deployment", "driver")["args"]
    assert "--prefix=blue-" in container(found, "Deployment", "driver")["args"]
    assert "--segment=room-1" in container(found, "DaemonSet", "driver")["args"]
    provisioner = container(found, "Deployment", "provisioner")["args"]
    assert "--feature-gates=Topology=true" in provisioner, provisioner


def multipath_and_node_records_are_mounted():
    found = rendered(node={"multipath": True, "iscsiDatabase": "/var/lib/iscsi"})
    mounts = container(found, "DaemonSet", "driver")["volumeMounts"]
    paths = {mount["mountPath"] for mount in mounts}
    assert {"/etc/multipath.conf", "/etc/multipath", "/var/lib/iscsi", "/etc/iscsi"} <= paths
    volumes = found["DaemonSet", "node"]["spec"]["template"]["spec"]["volumes"]
    assert {mount["name"] for mount in mounts} <= {volume["name"] for volume in volumes}


def classes_have_their_parameters_and_the_chap_secret():
    classes = [
        {"name": "fast", "filesystem": "xfs", "default": True, "mountOptions": ["noatime"]},
        {"name": "kept", "reclaimPolicy": "Retain", "bindingMode": "WaitForFirstConsumer"},
    ]
    found = rendered(storageClasses=classes, chapSecret="chap", snapshots={"enabled": False})
    assert not any(kind == "VolumeSnapshotClass" for kind, _ in found)
    names = [one["name"] for one in containers(found["Deployment", "controller"])]
    assert "snapshotter" not in names, names
    fast, kept = found["StorageClass", "fast"], found["StorageClass", "kept"]
    start = "csi.storage.k8s.io/"
    assert fast["parameters"][f"{start}fstype"] == "xfs"
    assert fast["mountOptions"] == ["noatime"]
    assert fast["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"
    assert (kept["reclaimPolicy"], kept["volumeBindingMode"]) == ("Retain", "WaitForFirstConsumer")
    for call in ("controller-publish", "node-stage"):
        assert kept["parameters"][f"{start}{call}-secret-name"] == "chap"
        assert kept["parameters"][f"{start}{call}-secret-namespace"] == NAMESPACE


def other_values_are_rendered():
    found = rendered(
        controller={"replicas": 3}, imagePullSecrets=["pull"],
        node={"nodeSelector": {"disk": "san"}, "tolerations": []},
        images={"driver": "registry.example.com/holdfast-csi:2"},
    )
    assert found["Deployment", "controller"]["spec"]["replicas"] == 3
    for kind, name in (("Deployment", "controller"), ("DaemonSet", "node")):
        spec = found[kind, name]["spec"]["template"]["spec"]
        assert spec["imagePullSecrets"] == [{"name": "pull"}]
        image = container(found, kind, "driver")["image"]
        assert image == "registry.example.com/holdfast-csi:2", image
    assert spec["nodeSelector"] == {"disk": "san"} and "tolerations" not in spec, spec


def main():
    checks = [
        helm_lint_succeeds,
        the_chart_renders_the_plain_manifests,
        invalid_values_are_refused,
        an_existing_secret_is_used,
        all_containers_get_the_topology,
        multipath_and_node_records_are_mounted,
        classes_have_their_parameters_and_the_chap_secret,
        other_values_are_rendered,
    ]
    failed = 0
    for check in checks:
        try:
            check()
        except AssertionError as error:
            failed += 1
            print(f"FAILED: {check.__name__}: {error}")
    print(f"{len(checks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
