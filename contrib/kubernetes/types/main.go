// types reads manifests from the standard input, and decodes each strictly into its published
// Kubernetes type: an unknown field is an error.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	storage "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

func of[T any]() any { return new(T) }

var types = map[string]func() any{
	"apps/v1 DaemonSet":  of[apps.DaemonSet],
	"apps/v1 Deployment": of[apps.Deployment],
	"v1 ConfigMap":       of[core.ConfigMap],
	"v1 Namespace":       of[core.Namespace],
	"v1 Secret":          of[core.Secret],
	"v1 ServiceAccount":  of[core.ServiceAccount],

	"rbac.authorization.k8s.io/v1 ClusterRole":        of[rbac.ClusterRole],
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding": of[rbac.ClusterRoleBinding],
	"rbac.authorization.k8s.io/v1 Role":               of[rbac.Role],
	"rbac.authorization.k8s.io/v1 RoleBinding":        of[rbac.RoleBinding],
	"storage.k8s.io/v1 CSIDriver":                     of[storage.CSIDriver],
	"storage.k8s.io/v1 StorageClass":                  of[storage.StorageClass],
	"snapshot.storage.k8s.io/v1 VolumeSnapshotClass":  of[snapshots.VolumeSnapshotClass],
}

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	good, bad := 0, 0
	for _, document := range bytes.Split(append([]byte("\n"), text...), []byte("\n---")) {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &kind); err != nil {
			fmt.Println(err)
			bad++
			continue
		}
		if kind.Kind == "" {
			continue
		}
		name := kind.APIVersion + " " + kind.Kind
		make, known := types[name]
		if !known {
			fmt.Printf("%s: no such type\n", name)
			bad++
		} else if err := yaml.UnmarshalStrict(document, make()); err != nil {
			fmt.Printf("%s: %v\n", name, err)
			bad++
		} else {
			good++
		}
	}
	fmt.Printf("%d good, %d bad\n", good, bad)
	if bad > 0 || good == 0 {
		os.Exit(1)
	}
}
