package scale

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

func TestStartReportCountsRequests(t *testing.T) {
	g := NewWithT(t)
	by := func(user, verb, resource, name string) audit.Request {
		return audit.Request{User: user, Verb: verb, Resource: resource, Name: name, URI: "/" + resource}
	}
	p := &phase{
		hub: audit.Requests{
			by("c", "list", "machines", ""), // a read past the cache; informers read resourceVersion=0
			{User: "c", Verb: "list", Resource: "machines", URI: "/machines?resourceVersion=0"},
			by("c", "watch", "machines", ""),
			by("c", "get", "", ""),
			by("c", "get", "secrets", "a"), by("c", "get", "secrets", "b"), by("c", "get", "secrets", "a"),
			by("c", "patch", "machines", "a"), by("c", "update", "leases", "l"), by("c", "create", "tokenreviews", ""),
			by("b", "create", "events", ""),
		},
		sites: audit.Requests{by("x", "get", "", ""), by("x", "list", "nodes", "")},
	}
	r := newStartReport(p, func(r audit.Request) string {
		return map[string]string{"c": env.ControlPlane, "b": env.Bootstrap}[r.User]
	})
	g.Expect(r.Managers[env.ControlPlane]).To(Equal(&managerReport{
		Requests: 5, Writes: 1, Repeated: 1, Informers: 2, Discovery: 1, Written: map[string]int{"patch machines": 1},
	}))
	g.Expect(r.Managers[env.Bootstrap]).To(Equal(&managerReport{Requests: 1, Writes: 1, Written: map[string]int{"create events": 1}}))
	g.Expect(r.Sites).To(Equal(map[string]int{"list nodes": 1}))
	g.Expect(r.writes()).To(Equal(2))
}

func TestWhatGoesOnForEverIsNotBusy(t *testing.T) {
	g := NewWithT(t)
	for _, r := range []audit.Request{
		{Verb: "watch", Resource: "nodes"},
		{Verb: "update", Resource: "leases"},
		{Verb: "create", Resource: "tokenreviews"},
		{Verb: "get", URI: "/readyz"},
	} {
		g.Expect(busy(r)).To(BeFalse(), r.Verb+r.Resource)
	}
	g.Expect(busy(audit.Request{Verb: "get", Resource: "secrets"})).To(BeTrue())
}

// It was taken for quiet once, and a restart without any request for one that writes nothing.
func TestAManagerThatWaitsForItsLeaseHasNotBegun(t *testing.T) {
	g := NewWithT(t)
	users := []string{"one", "other"}
	requests := audit.Requests{{User: "one", Verb: "watch", Resource: "machines"}, {User: "other", Verb: "get", Resource: "leases"}}
	g.Expect(begun(requests, users)).To(BeFalse())
	g.Expect(begun(append(requests, audit.Request{User: "other", Verb: "watch", Resource: "machines"}), users)).To(BeTrue())
}

func TestReportIsWrittenAndPrinted(t *testing.T) {
	g := NewWithT(t)
	r := good()
	r.Clusters = 200
	r.Restart.Managers[env.ControlPlane].Writes = 1
	r.judge(options{Options: results.Options{Clusters: 200, Margin: 1}})
	path := filepath.Join(t.TempDir(), "below", "scale.json")
	var out bytes.Buffer
	g.Expect(results.Publish(r, path, &out)).To(MatchError(results.ErrMissed))
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	read := &report{}
	g.Expect(json.Unmarshal(content, read)).To(Succeed())
	g.Expect(read).To(Equal(r))

	g.Expect(out.String()).To(MatchRegexp(`controlplane: writes of a restart +1 +0 +MISSED`))
	g.Expect(out.String()).To(MatchRegexp(`bootstrap: writes of a restart +0 +0 +ok`))
	g.Expect(out.String()).To(ContainSubstring("| 200 | 50 (0) MiB |"))
}
