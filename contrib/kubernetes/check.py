#!/usr/bin/env python3
"""Compares what the chart renders with the plain manifests, and looks at what its values do.

    contrib/kubernetes/check.py HELM [TYPES]

TYPES is the program of types/, which every rendering is given. Ends in `N passed, N failed,
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
# The cluster that is rendered for; helm that `go install` built knows of none.
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
    """The plain manifests, as `kubectl apply -k` makes them: with the names of images."""
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


def helm_finds_nothing_wrong():
    done = helm("lint", "--strict", **ARRAY)
    assert done.returncode == 0, done.stdout + done.stderr


def the_chart_says_what_the_plain_manifests_say():
    manifests = plain()
    data = manifests["ConfigMap", "array"]["data"]
    token = manifests["Secret", "array"]["stringData"]["token"]
    found = rendered(array={"api": data["api"], "ca": data["ca.pem"], "token": token})
    # helm makes the namespace itself.
    del manifests["Namespace", NAMESPACE]
    assert found.keys() == manifests.keys(), found.keys() ^ manifests.keys()
    for key, one in manifests.items():
        assert found[key] == one, f"{key}:\n{found[key]}\n{one}"


def what_makes_no_sense_is_refused():
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


def a_secret_that_is_there_is_used():
    found = rendered(array={**ARRAY["array"], "token": "", "existingSecret": "mine"})
    assert ("Secret", "array") not in found
    volumes = found["Deployment", "controller"]["spec"]["template"]["spec"]["volumes"]
    sources = next(one for one in volumes if one["name"] == "array")["projected"]["sources"]
    assert {"secret": {"name": "mine"}} in sources, sources


def topology_is_told_to_all_three():
    found = rendered(segment="room-1", prefix="blue-")
    assert "--segment=room-1" in container(found, "Deployment", "driver")["args"]
    assert "--prefix=blue-" in container(found, "Deployment", "driver")["args"]
    assert "--segment=room-1" in container(found, "DaemonSet", "driver")["args"]
    provisioner = container(found, "Deployment", "provisioner")["args"]
    assert "--feature-gates=Topology=true" in provisioner, provisioner


def multipath_and_the_place_of_nodes_are_mounted():
    found = rendered(node={"multipath": True, "iscsiDatabase": "/var/lib/iscsi"})
    mounts = container(found, "DaemonSet", "driver")["volumeMounts"]
    paths = {mount["mountPath"] for mount in mounts}
    assert {"/etc/multipath.conf", "/etc/multipath", "/var/lib/iscsi", "/etc/iscsi"} <= paths
    volumes = found["DaemonSet", "node"]["spec"]["template"]["spec"]["volumes"]
    assert {mount["name"] for mount in mounts} <= {volume["name"] for volume in volumes}


def classes_have_their_parameters_and_the_secret_of_chap():
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


def the_rest_comes_to_its_place():
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
        helm_finds_nothing_wrong,
        the_chart_says_what_the_plain_manifests_say,
        what_makes_no_sense_is_refused,
        a_secret_that_is_there_is_used,
        topology_is_told_to_all_three,
        multipath_and_the_place_of_nodes_are_mounted,
        classes_have_their_parameters_and_the_secret_of_chap,
        the_rest_comes_to_its_place,
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
