// Package openshift is shared by the simulated operators of OpenShift in an installed workload cluster. It has the
// conditions of ClusterOperators, the state of Nodes and Pods, and the record of written content. The subpackages are
// the operators: package etcdoperator for the etcd of a cluster, and package versionoperator for its upgrades.
package openshift
