// Package env starts a Cluster API management cluster from its real components, each as a separate process. The
// components are etcd, kube-apiserver, the controllers of Kubernetes that Cluster API depends on, its core
// manager and the Metal3 infrastructure provider (CAPM3). The two managers of this repository are optional and
// run with exactly the RBAC of their manifests. A workload cluster is another kube-apiserver. The caller
// provides the hardware, and the Bare Metal Operator unless Options.BareMetal is set. The package
// assistedservice adds the real assisted-service.
//
// Processes listen only on 127.0.0.1, except workload clusters with other flags (WorkloadCluster.Args).
// assisted-service and the webhook servers of Cluster API core and CAPM3 have no flag for their address. They
// listen on all addresses, on a port that this package chooses.
package env
