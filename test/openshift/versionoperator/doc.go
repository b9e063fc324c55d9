// Package versionoperator simulates OpenShift's cluster-version-operator and machine-config-operator in an installed
// workload cluster. It has the behavior on which clients that upgrade clusters depend:
//
//   - A request in the ClusterVersion version is judged as by the real operator. A malformed or unknown request is Invalid
//     and ignored. A release that cannot be retrieved, or must not be installed, is refused with ReleaseAccepted=False
//     and retried. No other condition reports the refusal. A table has the releases and the update graph ([Release]).
//   - Accepted risks in the request make it Invalid unless the feature gate for them is on. With the gate, a release whose
//     risks are accepted is recommended, and the history records the risks ([Operator.RecordRisks]).
//   - An accepted release is rolled out: one ClusterOperator after the other gets the version, machine-config last.
//     machine-config waits for the MachineConfigPool of the masters, not for the pool of the workers. It waits while any
//     pool is degraded.
//   - One Node of each pool after the other gets the rendered MachineConfig of the release: it is cordoned, rebooted, and
//     uncordoned when it is Ready. Masters wait for the quorum guard of etcd, as a drain does.
//   - kube-apiserver blocks minor upgrades while the kubelets of any Nodes would be too old for the next minor version, for
//     example in a paused pool.
//   - The operator does nothing until the cluster is installed. It does not revert versions that a test wrote, or unknown
//     machine configurations.
//   - All steps are faster than in OpenShift: see [Options]. The operator watches all objects, and sends no request while
//     nothing changes.
package versionoperator
