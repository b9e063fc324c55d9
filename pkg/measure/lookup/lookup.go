// Package lookup has the results of queries for the digests of release images, as metrics show them.
package lookup

// Result is the result of a query for the digest of a release image.
type Result string

// The results of queries.
const (
	Found    Result = "found"
	NotFound Result = "not_found"
	// Refused means that a registry refuses the pull secret.
	Refused Result = "refused"
	// Blocked means that the registries.conf of the cluster leaves no registry to query.
	Blocked Result = "blocked"
	// Unavailable means that no registry has the image, and a registry did not answer.
	Unavailable Result = "unavailable"
)

// Results are all results.
var Results = []Result{Found, NotFound, Refused, Blocked, Unavailable}
