// Package conformance checks bootstrap and control plane providers against the contracts of Cluster API, rule by
// rule. The providers are a black box: the package uses API servers and clusterctl only. A [Provider] describes
// the providers and the environment in which they install clusters.
//
// A provider's own test declares the specs and runs them:
//
//	func TestConformance(t *testing.T) {
//		RegisterFailHandler(Fail)
//		conformance.Specs(&conformance.Provider{...})
//		RunSpecs(t, "conformance")
//	}
//
// Every rule is one spec, named after it. After the suite a report lists all rules with their results, and the
// reason of each rule that does not apply. A rule that fails makes the suite fail, at any level.
package conformance
