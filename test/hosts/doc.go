// Package hosts simulates bare-metal machines and the Bare Metal Operator that reports them.
//
// A Rack watches BareMetalHosts and takes each of them from registering to provisioned. Behind every BareMetalHost stands a
// Host: a machine that boots only what it was really given. A live ISO of an InfraEnv, or a disk image whose ignition starts
// the discovery agent, makes it register with a Service, obey its instructions, walk through the stages of an installation
// and create its Node in the workload cluster with the labels and the providerID that its ignition says. Anything else
// boots an unknown system, which Escaped reports.
package hosts
