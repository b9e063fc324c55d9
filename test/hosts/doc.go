// Package hosts simulates bare-metal machines and the Bare Metal Operator that reports them.
//
// A Rack watches BareMetalHosts and takes each of them from registering to provisioned. Each BareMetalHost has a
// Host: a machine that boots only its real medium. The medium is a live ISO of an InfraEnv, or a disk image
// whose Ignition config starts the discovery agent. Such a host registers with a Service, follows its
// instructions, and walks through the stages of an installation. Then it creates its Node in the workload
// cluster with the labels and the providerID of its Ignition config. Any other medium boots an unknown system,
// which Escaped reports.
package hosts
