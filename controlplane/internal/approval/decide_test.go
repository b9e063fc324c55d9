package approval

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// made is a request in a world, some time after the first one.
func made(t *testing.T, in func() *world, name string, after time.Duration, change func(*world)) *Request {
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

// Every host has the token of the bootstrapper, and may request what it likes in the name of every Node, as often as it likes.
func TestTheNewestRequestThatFitsIsApproved(t *testing.T) {
	const first, second, third = time.Minute, 2 * time.Minute, 3 * time.Minute
	for situation, tc := range map[string]struct {
		requests []*Request
		// approved and left are the names of those that are approved, and of those that are reported.
		approved, left []string
	}{
		"one of each kind": {requests: []*Request{made(t, asleep, "client", first, nil), made(t, awake, "serving", first, nil)}, approved: []string{"client", "serving"}},
		"a bad one is newer than the good one": {
			requests: []*Request{made(t, asleep, "good", first, nil), made(t, asleep, "bad", second, misshapen)}, approved: []string{"good"},
		},
		"a bad one of the kubelet is newer than the good one": {
			requests: []*Request{made(t, awake, "good", first, nil), made(t, awake, "bad", second, foreign)}, approved: []string{"good"},
		},
		"of two good ones the newer": {requests: []*Request{made(t, asleep, "old", first, nil), made(t, asleep, "new", second, nil)}, approved: []string{"new"}},
		"only bad ones: the newest is reported": {
			requests: []*Request{made(t, asleep, "old", first, misshapen), made(t, asleep, "new", second, misshapen)}, left: []string{"new"},
		},
		"the older one of a kubelet that has its certificate": {
			requests: []*Request{made(t, asleep, "old", first, nil), made(t, asleep, "approved", second, approved)},
		},
		"one of the same second as the one that was approved": {
			requests: []*Request{made(t, asleep, "a", second, nil), made(t, asleep, "approved", second, approved)},
		},
		"one that is newer than the one that was approved": {
			requests: []*Request{made(t, asleep, "approved", first, approved), made(t, asleep, "new", second, nil)}, approved: []string{"new"},
		},
		"a client certificate was approved, a serving one is requested": {
			requests: []*Request{made(t, awake, "serving", first, nil), made(t, asleep, "approved", third, approved)}, approved: []string{"serving"},
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

func TestFewRequestsAreKeptHoweverManyThereAre(t *testing.T) {
	g := NewWithT(t)
	kept := Kept{}
	kept.Add(made(t, asleep, "good", 0, nil))
	for i := range 1000 {
		bad := made(t, asleep, fmt.Sprintf("bad-%d", i), time.Duration(i)*time.Second, nil)
		bad.Spec.Username = "somebody"
		kept.Add(bad)
	}
	g.Expect(kept.Requests()).To(HaveExactElements(HaveField("Name", "bad-999"), HaveField("Name", "good")))
	for i := range 1000 {
		kept.Add(made(t, asleep, fmt.Sprintf("good-%d", i), time.Duration(i)*time.Second, nil))
	}
	g.Expect(kept.Requests()).To(HaveLen(mostSound + 1))
	g.Expect(kept.Requests()).To(ContainElement(HaveField("Name", "good-999")))
}
