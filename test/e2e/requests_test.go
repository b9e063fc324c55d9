package e2e

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The largest numbers of requests of both managers together during the installation of the HA sample (five
// Machines), until its spec runs. Statuses follow other controllers, and several changes may be combined in one
// write. So the limits are twice the measured numbers. They are five times for reads during the start of the
// cluster, which lasts longer on a slow machine. A loop soon exceeds them.
var (
	// haHub are the requests to the hub, except for the kinds of assisted-service. Before its first write each
	// of the six Secrets is read without the cache.
	haHub = map[string]int{
		"create events": 60, "create metal3machines": 6, "get clusters": 28, "get secrets": 32,
		"patch machines": 40, "patch machines/status": 8, "patch metal3machines": 26, "patch metal3machinetemplates": 4,
		"patch openshiftassistedconfigs": 30, "patch openshiftassistedconfigs/status": 64,
		"patch openshiftassistedcontrolplanes": 8, "patch openshiftassistedcontrolplanes/status": 40, "patch secrets": 20,
	}
	// haService are the requests about the kinds of assisted-service. The owner of the registration is read
	// without the cache before each host is bound, and before it is approved. assisted-service writes to the same objects:
	// on a busy machine, several writes in a row conflict with its writes.
	haService = map[string]int{
		"get agentclusterinstalls": 28, "get clusterdeployments": 28, "patch agentclusterinstalls": 10,
		"patch agents": 30, "patch clusterdeployments": 10, "patch clusterimagesets": 4, "patch infraenvs": 20,
	}
	// haWorkload are the requests to the installed cluster.
	haWorkload = map[string]int{
		"create clusterrolebindings": 4, "create secrets": 4, "create serviceaccounts": 4, "create serviceaccounts/token": 4,
		"get clusterrolebindings": 8, "get nodes": 120, "get serviceaccounts": 8,
		"list certificatesigningrequests": 16, "list clusteroperators": 60, "list clusterversions": 48, "list configmaps": 16,
		"list nodes": 24, "list secrets": 24,
	}
)

// unforeseen is the limit of any other request, such as reads after a lost or conflicting request.
const unforeseen = 30

// serviceGroups are the API groups of assisted-service.
var serviceGroups = []string{"agent-install.openshift.io", "extensions.hive.openshift.io", "hive.openshift.io"}

// expectFewRequests checks the numbers of requests for the installation of the HA sample.
func expectFewRequests(ha *lab.Cluster) {
	GinkgoHelper()
	if laboratory.Service == nil || laboratoryOptions.BareMetal == lab.Real {
		Skip("the real assisted-service and Bare Metal Operator take longer, and their additional writes cause more reads")
	}
	toHub, toCluster := requestsIn(ha.Namespace, time.Time{}).Work(), toWorkload(ha).Work()
	isService := func(r audit.Request) bool { return slices.Contains(serviceGroups, r.Group) }
	toService := toHub.Where(isService)
	toOthers := toHub.Where(func(r audit.Request) bool { return !isService(r) })
	AddReportEntry("requests", map[string]map[string]int{
		"hub": toOthers.Count(), "assisted-service": toService.Count(),
		"cluster": toCluster.Count(),
	})
	Expect(toService.Over(haService, unforeseen)).To(BeEmpty(), "requests about the kinds of assisted-service")
	Expect(toOthers.Over(haHub, unforeseen)).To(BeEmpty(), "requests to the hub")
	Expect(toCluster.Over(haWorkload, unforeseen)).To(BeEmpty(), "requests to the installed cluster")
	for server, requests := range map[string]int{"assisted-service": len(toService), "the hub": len(toOthers), "the cluster": len(toCluster)} {
		Expect(requests).To(BeNumerically(">", 0), "recorded requests to %s", server)
	}
	Expect(downloads(ha)).To(BeZero(), "hosts that boot the live ISO need no Ignition config from us")
}

// toWorkload returns the requests of our managers to an installed cluster.
func toWorkload(cluster *lab.Cluster) audit.Requests {
	GinkgoHelper()
	requests, err := cluster.Server().Requests(env.WorkloadUserAgent)
	Expect(err).NotTo(HaveOccurred())
	return requests
}

// downloads counts the downloads of our managers from the simulated assisted-service, for a cluster with its own
// namespace. Downloads by hosts are not counted. The real service does not report them: 0.
func downloads(cluster *lab.Cluster) int {
	if laboratory.Service == nil {
		return 0
	}
	return laboratory.Service.Downloads(cluster.Namespace)
}
