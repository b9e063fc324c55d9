package bench

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
)

func TestRequestsAreCountedByPurpose(t *testing.T) {
	g := NewWithT(t)
	begin := time.Now()
	request := func(verb, resource, uri string, after time.Duration) audit.Request {
		return audit.Request{Verb: verb, Resource: resource, URI: uri, Time: begin.Add(after)}
	}
	counted := count(audit.Requests{
		request("patch", "agents", "", -time.Second), // before
		request("patch", "agents", "", 0),
		request("patch", "agents", "", 1),
		request("create", "secrets", "", 2),
		request("list", "machines", "/machines?limit=500&resourceVersion=0", 3),
		request("watch", "machines", "/machines?watch=true", 4),
		request("update", "leases", "", 5),
		request("get", "", "/api", 6),
		request("patch", "agents", "", time.Minute), // after
	}, begin, begin.Add(time.Minute))
	g.Expect(counted).To(Equal(requestCount{
		Total: 3, By: map[string]int{"patch agents": 2, "create secrets": 1}, Watches: 2, Leases: 1, Discovery: 1,
	}))
}
