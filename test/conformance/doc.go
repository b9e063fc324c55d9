// Package conformance checks bootstrap and control plane providers against the contracts of Cluster API, rule by rule, as a
// black box: it talks to API servers and to clusterctl only. What it needs to know of the providers, and of the world in which
// they install clusters, comes in as a [Provider].
//
// A provider's own test makes the specs and runs them:
//
//	func TestConformance(t *testing.T) {
//		RegisterFailHandler(Fail)
//		conformance.Specs(&conformance.Provider{...})
//		RunSpecs(t, "conformance")
//	}
//
// Every rule is one spec, named after it. After the suite a report lists all rules with their result, those too that do not
// apply, with the reason. A rule that fails makes the suite fail, whatever its level.
package conformance
