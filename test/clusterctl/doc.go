// Package clusterctl tests the journey of a user who has only the documents and a release. The user installs the
// providers and a cluster with the commands of the README, creates clusters of every other template, and describes and
// upgrades them. The providers are uninstalled and installed again. Finally all objects and the providers are deleted.
//
// The files that `make release` writes are on a simulated GitHub, at the addresses of the documents. clusterctl and curl
// reach it through an HTTP proxy, and trust its certificate authority.
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
