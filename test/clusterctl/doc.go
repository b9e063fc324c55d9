// Package clusterctl tests the journey of a user who has only a release. clusterctl installs the providers from
// the folder that `make release` writes, creates clusters of every template, and describes and upgrades them.
// Finally all objects are deleted.
//
// Real components are clusterctl, the release, kube-apiserver, etcd, Cluster API core, CAPM3 and our managers.
// The managers run with the arguments, variables and rights of the Deployments that clusterctl creates. The
// test simulates Deployments and Services (see env.Deployments), two kinds of cert-manager, assisted-service
// and the hardware. The releases of Cluster API core and CAPM3 are rendered from their modules, with their
// images.
//
// The previous release is built from an older commit (see Before in test/env/components). The commit is the newest
// tag, or without tags the one before the last change of the API. A checkout without history has no previous release.
// The upgrade is then between two releases of this checkout with different versions, and a skipped test reports it.
package clusterctl
