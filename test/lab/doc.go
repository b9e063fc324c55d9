// Package lab is the whole laboratory: a management cluster with Cluster API, CAPM3 and the two managers of this repository
// as real processes (package env), a simulated assisted-service (assistedsim), simulated bare metal with its operator
// (hosts), a registry of release images, and an API server for each cluster that is installed.
//
// A test applies one of config/samples as a user would and gets a handle on the cluster that comes of it:
//
//	l, err := lab.New(ctx, lab.Options{})
//	defer l.Stop()
//	cluster, err := l.ApplySample(ctx, "ha", lab.Mutations{Namespace: "rack-1"})
//	err = cluster.WaitAvailable(ctx)
//
// The clusters share one etcd. Where that matters, a cluster gets one of its own, with a member on each control-plane
// Node (Mutations.EtcdMembers): its API stops when they lose their quorum, and its members are reached as in OpenShift,
// through the port-forward of the kube-apiserver.
//
// Nothing is faked that Cluster API, CAPM3 or our managers do.
package lab
