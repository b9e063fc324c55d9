// Package env starts a Cluster API management cluster out of its real components, each as a process of its own: etcd,
// kube-apiserver, the controllers of Kubernetes that Cluster API relies on, its core manager, the Metal3 infrastructure
// provider (CAPM3) and, when wanted, the two managers of this repository under exactly the RBAC that their manifests
// ship. A workload cluster is one more kube-apiserver. Only hardware is left to the caller, and the Bare Metal Operator
// where it is not wanted (Options.BareMetal); so is assisted-service, which the package assistedservice adds for
// whoever wants no simulator of it.
//
// Processes listen on 127.0.0.1 only, but for a workload cluster that is given another flag (WorkloadCluster.Args);
// assisted-service and the webhook servers of Cluster API core and CAPM3 have no flag for their address and listen
// everywhere, on a port chosen here.
package env
