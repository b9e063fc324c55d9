package registration

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

func TestRegisterAgainFor(t *testing.T) {
	type spec = hiveext.AgentClusterInstallSpec
	lb := func(kind hiveext.LoadBalancerType) func(*spec) {
		return func(s *spec) { s.LoadBalancer = &hiveext.LoadBalancer{Type: kind} }
	}
	external := func(name string) func(*spec) {
		return func(s *spec) { s.ExternalPlatformSpec = &hiveext.ExternalPlatformSpec{PlatformName: name} }
	}
	mirrors := func(name string) func(*spec) {
		return func(s *spec) { s.MirrorRegistryRef = &hiveext.MirrorRegistryConfigMapReference{Name: name} }
	}
	networks := func(cidr string) func(*spec) {
		return func(s *spec) { s.Networking.MachineNetwork = []hiveext.MachineNetworkEntry{{CIDR: cidr}} }
	}
	disks := func(mode string) func(*spec) {
		return func(s *spec) { s.DiskEncryption = &hiveext.DiskEncryption{Mode: ptr.To(mode)} }
	}
	proxy := func(url string) func(*spec) { return func(s *spec) { s.Proxy = &hiveext.Proxy{HTTPProxy: url} } }
	vips := func(api, ingress string) func(*spec) {
		return func(s *spec) { s.APIVIPs, s.IngressVIPs = []string{api}, []string{ingress} }
	}
	size := func(masters, workers int) func(*spec) {
		return func(s *spec) {
			s.ProvisionRequirements = hiveext.ProvisionRequirements{ControlPlaneAgents: masters, WorkerAgents: workers}
		}
	}
	nothing := func(*spec) {}
	for situation, tc := range map[string]struct {
		registered, wanted func(*spec)
		field              string
		others             bool // another client sets the field
	}{
		"nothing changes":                 {registered: vips("1", "2"), wanted: vips("1", "2")},
		"one node becomes three":          {registered: size(1, 0), wanted: size(3, 0), field: "replicas"},
		"three nodes become one":          {registered: size(3, 2), wanted: size(1, 0), field: "replicas"},
		"three nodes become five":         {registered: size(3, 0), wanted: size(5, 2)},
		"another image":                   {registered: imageSet("a"), wanted: imageSet("b"), field: "the release image"},
		"the platform becomes none":       {registered: vips("1", "2"), wanted: nothing, field: "config.apiVIPs"},
		"the platform becomes baremetal":  {registered: nothing, wanted: vips("1", "2")},
		"one of two VIPs":                 {registered: vips("1", "2"), wanted: vips("1", "3"), field: "config.ingressVIPs"},
		"no machine network":              {registered: networks("10.0.0.0/24"), wanted: nothing, field: "config.machineNetwork"},
		"another machine network":         {registered: networks("10.0.0.0/24"), wanted: networks("10.0.1.0/24")},
		"a first machine network":         {registered: nothing, wanted: networks("10.0.1.0/24")},
		"no load balancer":                {registered: lb("UserManaged"), wanted: nothing, field: "config.loadBalancer"},
		"another load balancer":           {registered: lb("UserManaged"), wanted: lb("ClusterManaged")},
		"another external platform":       {registered: external("a"), wanted: external("b"), field: "config.externalPlatform"},
		"no external platform":            {registered: external("a"), wanted: nothing, field: "config.externalPlatform"},
		"an external platform":            {registered: nothing, wanted: external("a")},
		"no disk encryption":              {registered: disks("tpmv2"), wanted: nothing, field: "config.diskEncryption"},
		"another disk encryption":         {registered: disks("tpmv2"), wanted: disks("tang")},
		"no proxy":                        {registered: proxy("a"), wanted: nothing, field: "config.proxy"},
		"another proxy":                   {registered: proxy("a"), wanted: proxy("b")},
		"no mirrors":                      {registered: mirrors("a"), wanted: nothing, field: "config.imageRegistryRef"},
		"other mirrors":                   {registered: mirrors("a"), wanted: mirrors("b"), field: "config.imageRegistryRef"},
		"first mirrors":                   {registered: nothing, wanted: mirrors("b"), field: "config.imageRegistryRef"},
		"a proxy of another client stays": {registered: proxy("a"), wanted: nothing, others: true},
	} {
		t.Run(situation, func(t *testing.T) {
			registered, wanted := &hiveext.AgentClusterInstall{}, &hiveext.AgentClusterInstall{}
			tc.registered(&registered.Spec)
			tc.wanted(&wanted.Spec)
			field := RegisterAgainFor(registered, wanted, func(...string) bool { return !tc.others })
			if tc.field == "" {
				NewWithT(t).Expect(field).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(field).To(HavePrefix(tc.field))
		})
	}
}

func imageSet(name string) func(*hiveext.AgentClusterInstallSpec) {
	return func(s *hiveext.AgentClusterInstallSpec) { s.ImageSetRef = &hivev1.ClusterImageSetReference{Name: name} }
}

// assisted-service ignores an AgentClusterInstall that states no NTP servers any longer. With NTP_DEFAULT_SERVER it refuses
// the first servers of a registered cluster.
func TestFirstAndWithdrawnNTPSourcesAreRegisteredAgain(t *testing.T) {
	for situation, tc := range map[string]struct {
		registered, wanted string
		others             bool // another client has set the annotation
		field              string
	}{
		"none":                             {},
		"the same":                         {registered: "a,b", wanted: "a,b"},
		"other ones":                       {registered: "a,b", wanted: "b"},
		"withdrawn":                        {registered: "a,b", field: "config.ntpSources"},
		"first":                            {wanted: "b", field: "config.ntpSources"},
		"annotation of another client":     {registered: "a", others: true},
		"replaces those of another client": {registered: "a", wanted: "b", others: true},
	} {
		t.Run(situation, func(t *testing.T) {
			of := func(sources string) *hiveext.AgentClusterInstall {
				install := &hiveext.AgentClusterInstall{}
				if sources != "" {
					install.Annotations = map[string]string{assisted.NTPSourcesAnnotation: sources}
				}
				return install
			}
			owns := func(path ...string) bool {
				NewWithT(t).Expect(path).To(Equal([]string{"metadata", "annotations", assisted.NTPSourcesAnnotation}))
				return !tc.others
			}
			NewWithT(t).Expect(RegisterAgainFor(of(tc.registered), of(tc.wanted), owns)).To(Equal(tc.field))
		})
	}
}
