// Package members runs the etcd of a workload cluster like OpenShift: one member on each control-plane Node, with the
// name of the Node. Each member is a real etcd process with its own certificates. A member is on the disk of its host.
// It stops and starts with the power of the host, and is lost when the disk is wiped.
//
// The addresses of the hosts are real for the members and for the kube-apiserver, through the simulated network
// (package network). Members advertise https://<InternalIP of the Node>:2380 and :2379. Package etcdoperator decides
// which Nodes are members.
package members
