package approval

import (
	"cmp"
	"slices"
	"time"
)

// maxSound is the number of sound requests of each kind that are kept for a Node. All sound client requests
// are equivalent. Sound serving requests require the credentials of the Node.
const maxSound = 10

// Kept holds the requests of a cluster that may be decided. Its size is limited, because every host has the
// token of the bootstrapper and can create any number of requests.
type Kept map[kind][]*Request

// kind groups requests of which a limited number is kept.
type kind struct {
	purpose
	approved, sound bool
}

// purpose is the Node and the signer of a request.
type purpose struct{ node, signer string }

func (r *Request) purpose() purpose { return purpose{r.Node, r.Spec.SignerName} }

// Add keeps a request, unless enough newer ones of its kind are kept. Unsound requests do not displace
// others. Only the newest of them is kept, to report its defect.
func (k Kept) Add(r *Request) {
	of := kind{r.purpose(), r.Approved, r.defect() == ""}
	limit := 1
	if of.sound && !of.approved {
		limit = maxSound
	}
	at, _ := slices.BinarySearchFunc(k[of], r, newestFirst)
	kept := slices.Insert(k[of], at, r)
	k[of] = kept[:min(len(kept), limit)]
}

// Requests returns the kept requests by purpose, newest first.
func (k Kept) Requests() []*Request {
	var all []*Request
	for _, kept := range k {
		all = append(all, kept...)
	}
	slices.SortFunc(all, func(a, b *Request) int {
		return cmp.Or(cmp.Compare(a.Spec.SignerName, b.Spec.SignerName), cmp.Compare(a.Node, b.Node), newestFirst(a, b))
	})
	return all
}

// newestFirst compares requests by age. In the same second an approved request counts as newer, so that no
// second one is approved.
func newestFirst(a, b *Request) int {
	older := func(r *Request) int {
		if r.Approved {
			return 0
		}
		return 1
	}
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(older(a), older(b)), cmp.Compare(a.Name, b.Name))
}

// Decision approves a request unless it has an obstacle.
type Decision struct {
	*Request

	Obstacle string
}

// Decide chooses for each Node and purpose the newest request without an obstacle, or else the newest with
// its obstacle. Requests older than an approved one are omitted, because the kubelet already has its
// certificate.
func Decide(requests []*Request, hosts Hosts, nodes Nodes, now time.Time) []Decision {
	requests = slices.SortedFunc(slices.Values(requests), newestFirst)
	var decided []Decision
	at, settled := map[purpose]int{}, map[purpose]bool{}
	for _, r := range requests {
		of := r.purpose()
		settled[of] = settled[of] || r.Approved
		if settled[of] {
			continue
		}
		d := Decision{r, r.Obstacle(hosts, nodes, now)}
		settled[of] = d.Obstacle == ""
		switch known, found := at[of]; {
		case !found:
			at[of] = len(decided)
			decided = append(decided, d)
		case d.Obstacle == "":
			decided[known] = d
		}
	}
	return decided
}
