package approval

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newRequest returns a request in a world, created some time after a fixed date.
func newRequest(t *testing.T, in func() *world, name string, after time.Duration, change func(*world)) *Request {
	t.Helper()
	w := in()
	w.request.Name = name
	w.request.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(after))
	if change != nil {
		change(w)
	}
	request := w.read(t)
	NewWithT(t).Expect(request).NotTo(BeNil())
	return request
}

func misshapen(w *world) { w.subject.Subject.Organization = []string{"system:masters"} }

func foreign(w *world) { w.subject.DNSNames = []string{"api.example.com"} }

func approved(w *world) { decide(w, certificatesv1.CertificateApproved) }

// Every host has the token of the bootstrapper. It may create any number of requests for any Node.
func TestDecide(t *testing.T) {
	const first, second, third = time.Minute, 2 * time.Minute, 3 * time.Minute
	for situation, tc := range map[string]struct {
		requests []*Request
		// approved are the names of the approved requests, left those that are reported.
		approved, left []string
	}{
		"one of each kind": {
			requests: []*Request{
				newRequest(t, asleep, "client", first, nil),
				newRequest(t, awake, "serving", first, nil),
			},
			approved: []string{"client", "serving"},
		},
		"bad request is newer than good one": {
			requests: []*Request{newRequest(t, asleep, "good", first, nil), newRequest(t, asleep, "bad", second, misshapen)},
			approved: []string{"good"},
		},
		"bad serving request is newer than good one": {
			requests: []*Request{newRequest(t, awake, "good", first, nil), newRequest(t, awake, "bad", second, foreign)},
			approved: []string{"good"},
		},
		"newer of two good requests": {requests: []*Request{
			newRequest(t, asleep, "old", first, nil),
			newRequest(t, asleep, "new", second, nil),
		}, approved: []string{"new"}},
		"only bad requests: the newest is reported": {
			requests: []*Request{newRequest(t, asleep, "old", first, misshapen), newRequest(t, asleep, "new", second, misshapen)},
			left:     []string{"new"},
		},
		"older than an approved request": {
			requests: []*Request{newRequest(t, asleep, "old", first, nil), newRequest(t, asleep, "approved", second, approved)},
		},
		"same second as an approved request": {
			requests: []*Request{newRequest(t, asleep, "a", second, nil), newRequest(t, asleep, "approved", second, approved)},
		},
		"newer than an approved request": {
			requests: []*Request{newRequest(t, asleep, "approved", first, approved), newRequest(t, asleep, "new", second, nil)},
			approved: []string{"new"},
		},
		"approved client request does not affect serving request": {
			requests: []*Request{newRequest(t, awake, "serving", first, nil), newRequest(t, asleep, "approved", third, approved)},
			approved: []string{"serving"},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := asleep()
			kept := Kept{}
			for _, r := range tc.requests {
				kept.Add(r)
			}
			var granted, left []string
			for _, d := range Decide(kept.Requests(), HostsOf(w.facts, w.machines), w.nodes(), now().Time) {
				if d.Obstacle == "" {
					granted = append(granted, d.Name)
				} else {
					left = append(left, d.Name)
				}
			}
			g.Expect(granted).To(ConsistOf(tc.approved))
			g.Expect(left).To(ConsistOf(tc.left))
		})
	}
}

func TestKeptIsLimited(t *testing.T) {
	g := NewWithT(t)
	kept := Kept{}
	kept.Add(newRequest(t, asleep, "good", 0, nil))
	for i := range 1000 {
		bad := newRequest(t, asleep, fmt.Sprintf("bad-%d", i), time.Duration(i)*time.Second, nil)
		bad.Spec.Username = "other"
		kept.Add(bad)
	}
	g.Expect(kept.Requests()).To(HaveExactElements(HaveField("Name", "bad-999"), HaveField("Name", "good")))
	for i := range 1000 {
		kept.Add(newRequest(t, asleep, fmt.Sprintf("good-%d", i), time.Duration(i)*time.Second, nil))
	}
	g.Expect(kept.Requests()).To(HaveLen(maxSound + 1))
	g.Expect(kept.Requests()).To(ContainElement(HaveField("Name", "good-999")))
}
