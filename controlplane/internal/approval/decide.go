package approval

import (
	"cmp"
	"slices"
	"time"
)

// mostSound is how many sound requests of each kind are kept for a Node. A client request is as good as any other that is sound, and the others for a Node can only be made with its credentials.
const mostSound = 10

// Kept holds the requests of a cluster that are worth a decision, however many there are: every host has the token of the bootstrapper and can make as many as it likes.
type Kept map[kind][]*Request

// kind is what requests compete for, and in which state.
type kind struct {
	purpose
	approved, sound bool
}

// purpose is what a request is for.
type purpose struct{ node, signer string }

func (r *Request) purpose() purpose { return purpose{r.Node, r.Spec.SignerName} }

// Add keeps a request, unless there are enough newer ones of its kind. Requests that are not sound keep no others out: of those the newest is kept, for people to read why it is left alone.
func (k Kept) Add(r *Request) {
	of := kind{r.purpose(), r.Approved, r.defect() == ""}
	limit := 1
	if of.sound && !of.approved {
		limit = mostSound
	}
	at, _ := slices.BinarySearchFunc(k[of], r, newestFirst)
	kept := slices.Insert(k[of], at, r)
	k[of] = kept[:min(len(kept), limit)]
}

// Requests returns what is kept, by purpose, and the newest first.
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

// newestFirst compares requests by age. Of the same second an approved one counts as newer: nothing is approved besides it.
func newestFirst(a, b *Request) int {
	older := func(r *Request) int {
		if r.Approved {
			return 0
		}
		return 1
	}
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(older(a), older(b)), cmp.Compare(a.Name, b.Name))
}

// Decision is what becomes of a request: it is approved unless there is an obstacle.
type Decision struct {
	*Request

	Obstacle string
}

// Decide chooses for each Node and purpose the newest request that nothing is against; where there is none, the newest with what is against it. Those that are older than one that was approved
// are left out: the kubelet that has the certificate waits for none of them.
func Decide(requests []*Request, hosts Hosts, nodes Nodes, now time.Time) []Decision {
	requests = slices.SortedFunc(slices.Values(requests), newestFirst)
	var decided []Decision
	at, over := map[purpose]int{}, map[purpose]bool{}
	for _, r := range requests {
		of := r.purpose()
		over[of] = over[of] || r.Approved
		if over[of] {
			continue
		}
		d := Decision{r, r.Obstacle(hosts, nodes, now)}
		over[of] = d.Obstacle == ""
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
