// Package clusterctl is the journey of a user who has nothing but a release: clusterctl installs the providers from the folder that `make release` writes, makes clusters of
// every template, describes and upgrades, and everything is deleted again.
//
// What is real: clusterctl and the release, as it is written for users; kube-apiserver and etcd; Cluster API core, CAPM3 and our managers, which run with the arguments,
// variables and rights of the Deployments that clusterctl has made. What is played: Deployments and Services (see env.Deployments), cert-manager, of which there are only two
// kinds, assisted-service, and the hardware. The releases of Cluster API core and of CAPM3 are rendered from their modules, and have the images that these name.
//
// The upgrade is one between two releases of this tree, which differ in their version: nothing else of an older release is tried.
package clusterctl
