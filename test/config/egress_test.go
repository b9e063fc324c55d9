package config_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// destination matches a row in the table of the destinations of the managers, up to its ports.
var destination = regexp.MustCompile(`(?m)^\| (both|bootstrap|control plane) \| ([^|]+) \| ([^|]+) \| [^|]+ \|$`)

// portNumber matches a port in a row.
var portNumber = regexp.MustCompile(`\b[0-9]{2,5}\b`)

// documentedPorts returns the ports to which a manager connects by default, as documented.
func documentedPorts(t *testing.T, manager string) []string {
	t.Helper()
	g := NewWithT(t)
	page, err := os.ReadFile("../../docs/operations/monitoring.md")
	g.Expect(err).NotTo(HaveOccurred())
	rows := destination.FindAllStringSubmatch(string(page), -1)
	g.Expect(rows).To(HaveLen(6))
	var ports []string
	for _, row := range rows {
		if row[1] != "both" && row[1] != manager {
			continue
		}
		protocols := []string{"TCP"}
		if strings.Contains(row[3], "UDP") {
			protocols = []string{"TCP", "UDP"}
		}
		for _, port := range portNumber.FindAllString(row[3], -1) {
			for _, protocol := range protocols {
				ports = append(ports, protocol+" "+port)
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

func TestEgressPoliciesPermitDocumentedPorts(t *testing.T) {
	policies := map[string]networkingv1.NetworkPolicy{}
	for _, object := range components(t, "egress") {
		policy := networkingv1.NetworkPolicy{}
		NewWithT(t).Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &policy, true)).To(Succeed())
		policies[policy.Namespace] = policy
	}
	NewWithT(t).Expect(policies).To(HaveLen(2))
	for provider, manager := range map[string]string{"bootstrap": "bootstrap", "controlplane": "control plane"} {
		t.Run(manager, func(t *testing.T) {
			g := NewWithT(t)
			name := strings.ReplaceAll(manager, " ", "-")
			policy := policies["openshift-agent-"+name+"-system"]
			g.Expect(policy.Name).To(Equal(name+"-manager-egress"), "the chart installs both in one namespace")
			g.Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeEgress), "connections to the manager are not restricted")
			g.Expect(policy.Spec.PodSelector.MatchLabels).To(HaveKey("cluster.x-k8s.io/provider"), "it selects one of two managers")
			for _, object := range components(t, provider+"/default") {
				if object["kind"] == "Deployment" {
					labels, _, _ := unstructured.NestedStringMap(object, "spec", "template", "metadata", "labels")
					for key, value := range policy.Spec.PodSelector.MatchLabels {
						g.Expect(labels).To(HaveKeyWithValue(key, value))
					}
				}
			}
			var permitted []string
			for _, rule := range policy.Spec.Egress {
				g.Expect(rule.To).To(BeEmpty(), "clusters and registries have any address")
				for _, port := range rule.Ports {
					permitted = append(permitted, string(*port.Protocol)+" "+port.Port.String())
				}
			}
			slices.Sort(permitted)
			g.Expect(slices.Compact(permitted)).To(Equal(documentedPorts(t, manager)))
		})
	}
}
