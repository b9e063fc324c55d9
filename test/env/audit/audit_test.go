package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const auditLines = `{"stage":"ResponseComplete","requestURI":"/api/v1/secrets?resourceVersion=0","verb":"list",` +
	`"user":{"username":"a"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},` +
	`"requestReceivedTimestamp":"2026-01-01T00:00:00.000001Z"}` + "\n" +
	`{"stage":"ResponseComplete","requestURI":"/api/v1/secrets?continue=x&limit=200","verb":"list",` +
	`"user":{"username":"a"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},` +
	`"requestReceivedTimestamp":"2026-01-01T00:00:00.000002Z"}` + "\n" +
	`{"stage":"ResponseComplete","requestURI":"/api/v1/secrets?limit=1","verb":"list","user":{"username":"a"},` +
	`"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},` +
	`"requestReceivedTimestamp":"2026-01-01T00:00:00.000003Z"}` + "\n" +
	`{"stage":"ResponseStarted","requestURI":"/api/v1/secrets?watch=true","verb":"watch","user":{"username":"a"},` +
	`"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},` +
	`"requestReceivedTimestamp":"2026-01-01T00:00:01Z"}` + "\n" +
	`{"stage":"ResponseComplete","requestURI":"/api/v1/secrets?watch=true","verb":"watch","user":{"username":"a"},` +
	`"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},` +
	`"requestReceivedTimestamp":"2026-01-01T00:00:01Z"}` + "\n" +
	`{"stage":"ResponseComplete","requestURI":"/api/v1/secrets","verb":"list","user":{"username":"a"},` +
	`"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},` +
	`"requestReceivedTimestamp":"2026-01-01T00:00:02Z"}` + "\n" +
	`{"stage":"ResponseComplete","requestURI":"/apis","verb":"get","user":{"username":"a"},` +
	`"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:02Z"}` + "\n" +
	`{"stage":"ResponseComplete","requestURI":"/x","verb":"update","user":{"username":"a"},` +
	`"objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io","namespace":"n","name":"l"},` +
	`"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:02Z"}` + "\n" +
	`{"stage":"ResponseComplete","requestURI":"/x","verb":"patch","user":{"username":"admin"},` +
	`"impersonatedUser":{"username":"a"},"objectRef":{"resource":"machines","subresource":"status",` +
	`"apiGroup":"cluster.x-k8s.io","namespace":"n","name":"m"},"responseStatus":{"code":409},` +
	`"requestReceivedTimestamp":"2026-01-01T00:00:03Z"}` + "\n" +
	`{"stage":"ResponseComplete","requestURI":"/x","verb":"pat`

func TestAuditLog(t *testing.T) {
	g := NewWithT(t)
	requests, size, err := read(strings.NewReader(auditLines))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests.Count()).To(Equal(map[string]int{
		"list secrets": 4, "watch secrets": 1, "get ": 1, "update leases": 1, "patch machines/status": 1,
	}), "a watch counts once, an incomplete line does not")
	g.Expect(requests.Work().Count()).To(Equal(map[string]int{"list secrets": 2, "patch machines/status": 1}))
	g.Expect(requests.Writes().Count()).To(Equal(map[string]int{"update leases": 1, "patch machines/status": 1}))
	last := requests[len(requests)-1]
	g.Expect([]string{last.User, last.Group, last.Namespace, last.Name}).To(Equal([]string{"a", "cluster.x-k8s.io", "n", "m"}),
		"the user is the impersonated one")
	g.Expect(last.Code).To(Equal(409))
	g.Expect(last.Time.Second()).To(Equal(3))

	g.Expect(size).To(BeEquivalentTo(strings.LastIndex(auditLines, "\n") + 1))

	_, _, err = read(strings.NewReader("no JSON\n"))
	g.Expect(err).To(HaveOccurred())
}

// No request that a loop could repeat counts as idle.
func TestRequestsOfIdleClients(t *testing.T) {
	watch := Request{Verb: "watch", Resource: "secrets", URI: "/api/v1/secrets?resourceVersion=7&watch=true"}
	for situation, c := range map[string]struct {
		requests Requests
		count    map[string]int
	}{
		"leases and reviews for metrics": {Requests{
			{Verb: "update", Resource: "leases"},
			{Verb: "create", Resource: "tokenreviews"},
			{Verb: "create", Resource: "subjectaccessreviews"},
		}, map[string]int{}},
		"watches that are restarted": {
			Requests{watch, {Verb: "watch", Resource: "machines", URI: "/apis/x/machines?watch=true"}},
			map[string]int{},
		},
		"the same watch again and again": {Requests{watch, watch, watch}, map[string]int{"watch secrets": 2}},
		"a list from the watch cache": {
			Requests{{Verb: "list", Resource: "secrets", URI: "/api/v1/secrets?resourceVersion=0"}},
			map[string]int{"list secrets": 1},
		},
		"a page": {
			Requests{{Verb: "list", Resource: "secrets", URI: "/api/v1/secrets?limit=200"}},
			map[string]int{"list secrets": 1},
		},
		"discovery, versions and health": {
			Requests{{Verb: "get", URI: "/apis"}, {Verb: "get", URI: "/version"}, {Verb: "get", URI: "/readyz"}},
			map[string]int{"get ": 3},
		},
		"an object": {
			Requests{{Verb: "get", Resource: "machines"}, {Verb: "patch", Resource: "machines", Subresource: "status"}},
			map[string]int{"get machines": 1, "patch machines/status": 1},
		},
	} {
		t.Run(situation, func(t *testing.T) { NewWithT(t).Expect(c.requests.Unrest().Count()).To(Equal(c.count)) })
	}
}

func TestFollowerReadsEachRequestOnce(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "audit.json")
	f := Follow(path)
	g.Expect(f.Next()).To(BeEmpty(), "no log yet")
	// The last line is cut off, then completed.
	g.Expect(os.WriteFile(path, []byte(auditLines), 0o600)).To(Succeed())
	g.Expect(f.Next()).To(HaveLen(8))
	g.Expect(f.Next()).To(BeEmpty())
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = file.WriteString(`ch","objectRef":{"resource":"agents"}}` + "\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Close()).To(Succeed())
	completed, err := f.Next()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(completed.Count()).To(Equal(map[string]int{"patch agents": 1}))
}

func TestOverReturnsRequestsAboveBounds(t *testing.T) {
	g := NewWithT(t)
	requests := Requests{
		{Verb: "patch", Resource: "machines", Subresource: "status"},
		{Verb: "patch", Resource: "machines", Subresource: "status"},
		{Verb: "get", Resource: "secrets"},
		{Verb: "create", Resource: "events"},
	}
	g.Expect(requests.Over(map[string]int{"patch machines/status": 2, "get secrets": 1, "create events": 5}, 0)).To(BeEmpty())
	g.Expect(requests.Over(map[string]int{"patch machines/status": 1, "get secrets": 1, "patch machines": 9}, 0)).To(Equal([]string{
		"create events: 1, at most 0", "patch machines/status: 2, at most 1",
	}))
	g.Expect(requests.Over(nil, 1)).To(Equal([]string{"patch machines/status: 2, at most 1"}))
}
