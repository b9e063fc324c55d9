package bench

import (
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

func TestClustersAtOnceShareNamespaceButNoHosts(t *testing.T) {
	g := NewWithT(t)
	b := &bench{options: options{Options: results.Options{Clusters: 2}, installed: 1000}}
	selected := map[string]bool{}
	for i := range b.options.Clusters {
		place := b.place(i)
		g.Expect(place.Namespace).To(Equal(shared))
		host := &metal3api.BareMetalHost{}
		for _, change := range place.HostOptions {
			change(0, host)
		}
		template := &unstructured.Unstructured{Object: map[string]any{"kind": "Metal3MachineTemplate"}}
		place.Edit(template)
		selector, _, err := unstructured.NestedStringMap(template.Object, "spec", "template", "spec", "hostSelector", "matchLabels")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(selector).To(Equal(host.Labels))
		other := &unstructured.Unstructured{Object: map[string]any{"kind": "Cluster"}}
		place.Edit(other)
		g.Expect(other.Object).To(HaveLen(1))
		selected[selector[hostLabel]+host.Name+place.ClusterName] = true
	}
	g.Expect(selected).To(HaveLen(b.options.Clusters))
}

func TestClustersAtOnceHaveNamespacesWithoutInstalledClusters(t *testing.T) {
	g := NewWithT(t)
	b := &bench{options: options{Options: results.Options{Clusters: 2}}}
	g.Expect(b.place(0).Namespace).NotTo(Equal(b.place(1).Namespace))
	g.Expect(b.options.observed()).To(BeEmpty())
	g.Expect(b.options.simulated()).To(BeEmpty())
}
