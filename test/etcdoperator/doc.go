// Package etcdoperator plays OpenShift's cluster-etcd-operator in a workload cluster whose etcd has members (package
// members): as far as whoever scales a control plane depends on it.
//
//   - A control-plane Node that is no member gets one: as a learner first, which is promoted when it has caught up; one at a time, and only while no member is unhealthy.
//   - No member of a Node is ever removed: without a functional Machine API that is for others to do. The container of a member that others
//     removed is started again, and then its Node is a candidate like any other, as long as it is there.
//   - What is written: ConfigMaps etcd-endpoints and etcd-ca-bundle, Secret etcd-client and those of each node, the pods of etcd, the guard Pods with their PodDisruptionBudget,
//     the state of etcds/cluster with its revisions, and the conditions of the ClusterOperators etcd and kube-apiserver.
//   - What the pods consist of goes to one node after the other as a revision, which restarts its member. None is made unless a member can be away without harm, as in
//     4.18 and later: with two voters nothing is restarted before a successor votes.
//   - A guard Pod is Ready while the member of its Node serves, and no Node that is cordoned gets one: so a drain is refused while a member is away, or while another Node is drained.
//   - Secrets of a Node that is gone stay. A Node that comes back under the name finds them, with the address that it had.
package etcdoperator
