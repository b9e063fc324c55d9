package hostconfig

import (
	"context"
	"errors"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// TestBareMetalHostsAreInstalledLater: the manager was started before the Bare Metal Operator was installed.
func TestBareMetalHostsAreInstalledLater(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconciler.metal3.Store(false)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.create(bareMetalHost(), discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.NoHostFitsReason)
	w.Expect(w.message(bootstrapv1.HostAvailableCondition)).To(ContainSubstring("install the Bare Metal Operator"))

	mapper, indexed, queries, watched := meta.NewDefaultRESTMapper(nil), 0, 0, 0
	later := &bareMetalHosts{reconciler: w.reconciler, mapper: mapper}
	later.steps = kube.NewSteps(
		func(context.Context) error {
			if indexed++; indexed == 1 {
				return errors.New("no answer")
			}
			return nil
		},
		later.reading(func() error {
			if queries++; queries == 1 {
				return errors.New("no answer")
			}
			watched++
			return nil
		}),
	)
	reconcile := func() error {
		_, err := later.Reconcile(t.Context(), ctrl.Request{})
		return err
	}
	w.Expect(reconcile()).To(Succeed(), "no CustomResourceDefinition")
	w.Expect(watched).To(BeZero(), "no CustomResourceDefinition")
	w.create(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: bareMetalHostCRD}})
	w.Expect(reconcile()).To(MatchError(errNotServed))
	w.Expect(watched).To(BeZero(), "not served yet")
	mapper.Add(schema.GroupVersionKind{Group: metal3api.GroupVersion.Group, Version: metal3api.GroupVersion.Version, Kind: "BareMetalHost"},
		meta.RESTScopeNamespace)
	w.Expect(reconcile()).NotTo(Succeed(), "the API server does not answer: no index")
	w.Expect(queries).To(BeZero(), "not indexed yet")
	w.Expect(reconcile()).NotTo(Succeed(), "the API server does not answer: no watch")
	w.Expect(w.reconciler.metal3.Load()).To(BeFalse(), "not watched")
	w.Expect(reconcile()).To(Succeed())
	w.Expect(reconcile()).To(Succeed())
	w.Expect(watched).To(Equal(1), "watched once")
	w.Expect(indexed).To(Equal(2), "indexed once: the index of a cache cannot be added again")
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "the host is found")
}

// TestMetadataOfHost: CAPM3 renders the metadata into a Secret of the infra machine. The Agent gets the
// values that the config refers to, and nothing before the Secret exists.
func TestMetadataOfHost(t *testing.T) {
	w := booted(t)
	infraMachine := read(w, "m", metal3Machine("live-iso"))
	w.change(infraMachine, func() {
		w.Expect(unstructured.SetNestedField(infraMachine.Object, "m-metadata", "status", "metaData", "name")).To(Succeed())
	})
	config := w.config()
	w.change(config, func() {
		config.Spec.NodeRegistration = &bootstrapv1.NodeRegistration{Name: "$METADATA_RACK-7", KubeletExtraLabels: []string{"row=$METADATA_ROW"}}
	})
	w.create(discovered("a", "m", bootMAC))
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})
	w.Expect(err).To(MatchError(ContainSubstring("m-metadata")), "not rendered yet")
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "not bound")

	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m-metadata"},
		Data:       map[string][]byte{"metaData": []byte("rack: r7\nrow: \"12\"\n"), "networkData": []byte("rack: other\n")},
	})
	w.reconcile()
	w.Expect(w.agent("a").Spec.Hostname).To(Equal("r7-7"))
	w.Expect(w.agent("a").Spec.NodeLabels).To(HaveKeyWithValue("row", "12"))
}

// TestAgentLabelsOfBareMetalHost: the labels are applied once, also after a restart, until their annotation is removed.
// assisted-service has set the labels of the config, which precede those of the BareMetalHost.
func TestAgentLabelsOfBareMetalHost(t *testing.T) {
	w := booted(t)
	config, host := w.config(), read(w, "rack1-u7", &metal3.Host{})
	w.change(config, func() { config.Spec.AgentLabels = map[string]bootstrapv1.LabelValue{"site": "config"} })
	w.change(host, func() {
		host.Annotations = map[string]string{
			metal3.AgentLabelAnnotationPrefix + "example.com/rack": "r1", metal3.AgentLabelAnnotationPrefix + "site": "host",
		}
	})
	agent := discovered("a", "m", bootMAC)
	agent.Labels["site"] = "config"
	w.create(agent)
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "bound")
	w.Expect(w.agent("a").Labels).To(And(
		HaveKeyWithValue("example.com/rack", "r1"), HaveKeyWithValue("site", "config"), HaveKeyWithValue(aiv1beta1.InfraEnvNameLabel, "m"),
	))

	w.reconcile()
	before := w.writes
	w.restart()
	w.reconcile()
	w.Expect(w.writes).To(Equal(before), "nothing is applied again")

	w.change(host, func() { delete(host.Annotations, metal3.AgentLabelAnnotationPrefix+"example.com/rack") })
	w.reconcile()
	w.Expect(w.agent("a").Labels).To(And(Not(HaveKey("example.com/rack")), HaveKeyWithValue("site", "config")))
}
