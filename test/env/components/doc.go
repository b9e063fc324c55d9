// Package components builds the real components of a management cluster, the tools that render their manifests, and the CRDs of
// what does not run here, out of Go modules (test/tools) into the git-ignored folder .tools at the top of the repository, once
// for each version. PostgreSQL alone, which assisted-service needs, comes from the machine.
//
// `make quick` leaves out the tests of packages that depend on this one: they may have to wait for a build.
package components
