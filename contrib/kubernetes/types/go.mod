module holdfast/types

go 1.22.0

require (
    github.com/kubernetes-csi/external-snapshotter/client/v8 v8.0.0
    k8s.io/api v0.31.3
    sigs.k8s.io/yaml v1.4.0
)
