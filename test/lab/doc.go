// Package lab runs all components for tests on one machine. A management cluster with Cluster API, CAPM3 and the two
// managers of this repository runs as real processes (package env). The lab simulates assisted-service (assistedsim)
// and bare metal with its operator (hosts). It has a registry of release images, and an API server for each installed
// cluster.
//
// A test applies one of config/samples like a user and gets a handle of the resulting cluster:
//
//	l, err := lab.New(ctx, lab.Options{})
//	defer l.Stop()
//	cluster, err := l.ApplySample(ctx, "ha", lab.Mutations{Namespace: "rack-1"})
//	err = cluster.WaitAvailable(ctx)
//
// The clusters share one etcd. With Mutations.EtcdMembers a cluster has its own, with a member on each control-plane
// Node. Its API fails when the etcd loses quorum, and clients reach its members as in OpenShift, through the
// port-forward of the kube-apiserver.
//
// Cluster API, CAPM3 and our managers are real.
package lab
