package e2e

import (
	"encoding/json"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("A host with static addresses", Label("network", "nightly"), func() {
	It("is not started before its NMStateConfig exists, and then boots the image that contains it", func(ctx SpecContext) {
		onlySimulated() // the real service is built without nmstate
		const namespace = "static"
		cluster := apply(ctx, "sno", lab.Mutations{
			Namespace: namespace, ClusterName: "fixed", LightAPI: lightly(),
			Edit: edits(
				edit(controlPlaneKind, map[string]any{"matchLabels": map[string]any{"example.com/cluster": "fixed"}},
					"spec", "openshiftAssistedConfigSpec", "nmStateConfigLabelSelector"),
				edit("Metal3MachineTemplate", map[string]any{"matchLabels": map[string]any{"example.com/rack": "b7"}}, "spec",
					"template", "spec", "hostSelector"),
			),
		})
		s := wait(ctx, cluster, "waiting for its addresses",
			func(s *lab.State) bool { return configHas(s, bootstrapv1.WaitingForNMStateConfigReason) })
		Expect(lab.Condition(s.Machines[0].Config.Status.Conditions,
			bootstrapv1.ReadyCondition).Message).To(ContainSubstring("example.com/cluster=fixed"))
		reported := func(reason string) func(*lab.State) bool {
			return func(s *lab.State) bool {
				c := lab.Condition(s.Machines[0].Config.Status.Conditions, bootstrapv1.HostAvailableCondition)
				return c.Reason == reason && strings.Contains(c.Message, cluster.Hosts[0].Name)
			}
		}
		wait(ctx, cluster, "reporting that the host does not fit, with the reason", reported(bootstrapv1.NoHostFitsReason))
		patch(ctx, cluster.Hosts[0].DeepCopy(), `{"metadata":{"labels":{"example.com/rack":"b7"}}}`)
		wait(ctx, cluster, "reporting the host that fits", reported(bootstrapv1.HostsFitReason))
		key := path.Join(namespace, cluster.Hosts[0].Name)
		Consistently(ctx, func(g Gomega) {
			g.Expect(state(ctx, cluster).Machines[0].Spec.Bootstrap.DataSecretName).To(BeNil())
			if host := laboratory.Rack.Host(key); host != nil {
				g.Expect(host.Boots()).To(BeEmpty())
			}
		}).WithTimeout(quiet).Should(Succeed())

		network := &aiv1beta1.NMStateConfig{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "fixed",
			Labels: map[string]string{"example.com/cluster": "fixed"},
		}}
		network.Spec.Interfaces = []*aiv1beta1.Interface{{Name: "eth0", MacAddress: cluster.Hosts[0].Spec.BootMACAddress}}
		network.Spec.Config = json.RawMessage(`{"interfaces": [{"name": "eth0", "type": "ethernet", "state": "up",
			"ipv4": {"enabled": true, "address": [{"ip": "192.168.111.77", "prefix-length": 24}]}}]}`)
		Expect(laboratory.Client().Create(ctx, network)).To(Succeed())
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		s = state(ctx, cluster)
		Expect(s.InfraEnvs[0].Status.InfraEnvDebugInfo.StaticNetworkDownloadURL).NotTo(BeEmpty())
		Expect(events(ctx, namespace, "NMStateConfigMismatch")).To(BeEmpty())
		wait(ctx, cluster, "without reports on hosts: its own is installed", func(s *lab.State) bool {
			return lab.Condition(s.Machines[0].Config.Status.Conditions, bootstrapv1.HostAvailableCondition).Reason == ""
		})
		DeferCleanup(func(ctx SpecContext) { Expect(laboratory.Client().Delete(ctx, network)).To(Succeed()) }, NodeTimeout(soon))
	}, NodeTimeout(2*installTimeout))
})
