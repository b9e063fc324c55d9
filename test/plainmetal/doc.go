// Package plainmetal is an infrastructure provider that has servers, disk images and user data, and nothing else: no
// BareMetalHosts, no inspection, no live ISO, as metal-stack and others have none. It keeps the contract of Cluster API
// for infrastructure providers in version v1beta2, and gives Machines the simulated servers of package hosts.
package plainmetal
