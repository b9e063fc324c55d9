// Package plainmetal is an infrastructure provider with servers, disk images and user data only. It has no
// BareMetalHosts, no inspection and no live ISO, like metal-stack. It implements the v1beta2 contract of Cluster API
// for infrastructure providers. Its Machines use the simulated servers of package hosts.
package plainmetal
