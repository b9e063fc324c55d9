// Package clusterctl is the journey of a user who has nothing but a release: clusterctl installs the providers from the
// folder that `make release` writes, makes clusters of every template, describes and upgrades, and everything is
// deleted again.
//
// What is real: clusterctl and the release, as it is written for users; kube-apiserver and etcd; Cluster API core,
// CAPM3 and our managers, which run with the arguments, variables and rights of the Deployments that clusterctl has
// made. What is played: Deployments and Services (see env.Deployments), cert-manager, of which there are only two
// kinds, assisted-service, and the hardware. The releases of Cluster API core and of CAPM3 are rendered from their
// modules, and have the images that these name.
//
// The release before is one of an older commit (see Before in test/env/components): of the newest tag or, as long as
// nothing is tagged, of the commit before the last change of the API. A checkout without history knows none: the
// upgrade is then one between two releases of this checkout, which differ in their version, and a skipped test says so.
package clusterctl
