// Package members runs the etcd of a workload cluster as OpenShift does: one member on each control-plane Node, named like the Node, each a
// real etcd process with certificates of its own. A member is on the disk of its host: it ends with the power and comes back with it, and
// is lost when the disk is wiped.
//
// The hosts' addresses are real to the members and to the kube-apiserver, through a network of their own (package network): members
// advertise https://<InternalIP of the Node>:2380 and :2379. Who is a member, is decided by others (package etcdoperator).
package members
