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

// What both managers together may ask for while the HA sample (five Machines) is installed, and until its spec looks.
// Statuses follow what others do, and more or fewer of their changes fall into one write: the bounds are twice what was
// measured, and five times where it is read in the cluster what comes up there, which lasts as long as the machine is
// slow. What is asked for in a loop exceeds them soon.
var (
	// haHub are the requests to the hub but those about the kinds of assisted-service. Before its first write each of
	// the six Secrets is read past the cache.
	haHub = map[string]int{
		"create events": 60, "create metal3machines": 6, "get secrets": 32,
		"patch machines": 40, "patch machines/status": 8, "patch metal3machines": 30, "patch metal3machinetemplates": 4,
		"patch openshiftassistedconfigs": 30, "patch openshiftassistedconfigs/status": 64,
		"patch openshiftassistedcontrolplanes": 8, "patch openshiftassistedcontrolplanes/status": 40, "patch secrets": 20,
	}
	// haService are those by which assisted-service is told what to do. Whose the registration is, is read past the
	// cache before each host is bound, and before it is approved.
	haService = map[string]int{
		"get agentclusterinstalls": 28, "get clusterdeployments": 28, "patch agentclusterinstalls": 6,
		"patch agents": 20, "patch clusterdeployments": 4, "patch clusterimagesets": 4, "patch infraenvs": 10,
	}
	// haWorkload are those to the installed cluster.
	haWorkload = map[string]int{
		"create clusterrolebindings": 4, "create secrets": 4, "create serviceaccounts": 4, "create serviceaccounts/token": 4,
		"get clusterrolebindings": 8, "get nodes": 120, "get serviceaccounts": 8,
		"list certificatesigningrequests": 16, "list clusteroperators": 60, "list clusterversions": 48, "list configmaps": 16,
		"list nodes": 24, "list secrets": 24,
	}
)

// unforeseen is how often may be asked for anything else: what a request that was lost, or met another one, has managers look at again.
const unforeseen = 10

// serviceGroups are the API groups of assisted-service.
var serviceGroups = []string{"agent-install.openshift.io", "extensions.hive.openshift.io", "hive.openshift.io"}

// expectFewRequests checks what the installation of the HA sample has cost everybody who was asked.
func expectFewRequests(ha *lab.Cluster) {
	GinkgoHelper()
	if laboratory.Service == nil || laboratoryOptions.BareMetal == lab.Real {
		Skip("the real assisted-service and the real Bare Metal Operator take longer, and write more often what is read then")
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
	for what, asked := range map[string]int{"assisted-service": len(toService), "the hub": len(toOthers), "the cluster": len(toCluster)} {
		Expect(asked).To(BeNumerically(">", 0), "%s was asked, and it is known for what", what)
	}
	Expect(downloads(ha)).To(BeZero(), "hosts that boot the live ISO need no ignition from us")
}

// toWorkload are the requests of our managers to an installed cluster.
func toWorkload(cluster *lab.Cluster) audit.Requests {
	GinkgoHelper()
	requests, err := cluster.Server().Requests(env.WorkloadUserAgent)
	Expect(err).NotTo(HaveOccurred())
	return requests
}

// downloads counts what was downloaded from the simulated assisted-service by our managers, for a cluster in a
// namespace of its own; hosts get theirs otherwise. Of the real one it is not known: 0.
func downloads(cluster *lab.Cluster) int {
	if laboratory.Service == nil {
		return 0
	}
	return laboratory.Service.Downloads(cluster.Namespace)
}
