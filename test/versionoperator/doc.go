// Package versionoperator plays OpenShift's cluster-version-operator and machine-config-operator in an installed
// workload cluster: as far as whoever upgrades clusters depends on them.
//
//   - What ClusterVersion version asks for is judged as the real one does: a malformed or unknown request is Invalid and ignored, one that cannot be had or must not be
//     taken is refused with ReleaseAccepted=False and tried again, and nothing else of the status says so. Which releases there are, and what leads to them, is a table ([Release]).
//   - What is accepted is rolled out: one ClusterOperator after the other gets the version, machine-config last. That one waits for the MachineConfigPool of the masters, not for
//     that of the workers, but for no pool while any is degraded.
//   - Of each pool one Node after the other is given the rendered MachineConfig of the release: cordoned, rebooted, and let go when it is Ready. Masters wait for the quorum
//     guard of etcd, as a drain does.
//   - kube-apiserver keeps the cluster at its minor version while the kubelets of Nodes, such as those of a paused pool, would be too old for the next one.
//   - A cluster is left alone until it is installed. What others write about a version, or a machine configuration that nobody knows, is not put right: tests do that.
//   - All goes faster than in reality: see [Options]. While nothing happens nothing is asked; what can be watched is.
package versionoperator
