// Package etcdoperator simulates OpenShift's cluster-etcd-operator in a workload cluster whose etcd has members (package
// members). It has the behavior on which clients that scale a control plane depend:
//
//   - A control-plane Node without a member gets a learner, which is promoted when it has caught up. Members are added
//     one after the other, and only while no member is unhealthy.
//   - The operator never removes the member of a Node: without a functional Machine API, other clients must do so. The
//     container of a removed member is started again. Then its Node is a candidate again, as long as the Node exists.
//   - The operator writes the ConfigMaps etcd-endpoints and etcd-ca-bundle, the Secret etcd-client and the Secrets of
//     each Node, the Pods of etcd, and the guard Pods with their PodDisruptionBudget. It also writes the state of
//     etcds/cluster with its revisions, and the conditions of the ClusterOperators etcd and kube-apiserver.
//   - A new content of the Pods is rolled out as a revision, to one Node after the other, and restarts the member. As in
//     4.18 and later, a revision is created only while one member can fail without harm. With two voters no member is
//     restarted before its successor votes.
//   - A guard Pod is Ready while the member of its Node serves, and a cordoned Node gets no guard Pod. So a drain is
//     refused while a member is down, or while another Node is drained.
//   - Secrets of a deleted Node stay. A Node that returns under its name uses them, with the address it had.
package etcdoperator
