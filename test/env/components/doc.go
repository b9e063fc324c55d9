// Package components builds the real components of a management cluster and the tools that render their
// manifests. It also generates the CRDs of components that do not run here. It builds Go modules (test/tools)
// into the git-ignored folder .tools at the top of the repository, once for each version. Only PostgreSQL,
// which assisted-service needs, must be installed on the machine.
//
// `make quick` leaves out the tests of packages that depend on this one, because they may wait for a build.
package components
