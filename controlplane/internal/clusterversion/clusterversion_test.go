package clusterversion

import (
	"context"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// fakeCluster is a workload cluster, and the connection to it.
type fakeCluster struct {
	*WithT
	client.Client
	*Versions
}

// Connect implements Clusters.
func (c *fakeCluster) Connect(ctx context.Context, _ client.ObjectKey, requests func(context.Context, *conn.Conn) error) error {
	return requests(ctx, &conn.Conn{Client: c.Client})
}

func newCluster(t *testing.T, objects ...client.Object) *fakeCluster {
	t.Helper()
	c := &fakeCluster{WithT: NewWithT(t)}
	c.Versions = New(c)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, configv1.Install, machineconfigurationv1.Install} {
		c.Expect(add(scheme)).To(Succeed())
	}
	c.Client = fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(objects...).Build()
	return c
}

func version(change func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	v := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "id", Channel: "stable-4.19"},
	}
	if change != nil {
		change(v)
	}
	return v
}

func (c *fakeCluster) version() *configv1.ClusterVersion {
	v := &configv1.ClusterVersion{}
	c.Expect(c.Get(context.Background(), client.ObjectKey{Name: "version"}, v)).To(Succeed())
	return v
}

func operator(name string, conditionType configv1.ClusterStatusConditionType, status configv1.ConditionStatus) *configv1.ClusterOperator {
	return &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: configv1.ClusterOperatorStatus{
		Conditions: []configv1.ClusterOperatorStatusCondition{{Type: conditionType, Status: status}},
	}}
}

func pool(name string, change func(*machineconfigurationv1.MachineConfigPool)) *machineconfigurationv1.MachineConfigPool {
	p := &machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(p)
	return p
}

func TestObserve(t *testing.T) {
	degraded := func(p *machineconfigurationv1.MachineConfigPool) {
		p.Status.Conditions = []machineconfigurationv1.MachineConfigPoolCondition{
			{Type: machineconfigurationv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue},
			{Type: machineconfigurationv1.MachineConfigPoolRenderDegraded, Status: corev1.ConditionTrue, Message: "no such file"},
		}
	}
	paused := func(p *machineconfigurationv1.MachineConfigPool) { p.Spec.Paused = true }
	c := newCluster(t, version(func(v *configv1.ClusterVersion) {
		v.Spec.DesiredUpdate = &configv1.Update{Version: "4.19.9", Image: "image", Force: true}
		v.Status.History = []configv1.UpdateHistory{
			{State: configv1.PartialUpdate, Version: "4.19.8", Image: "i8"},
			{State: configv1.PartialUpdate, Version: "4.19.5", Image: "i5"},
			{State: configv1.CompletedUpdate, Version: "4.19.3", Image: "i3"},
		}
		v.Status.AvailableUpdates = []configv1.Release{{Version: "4.19.9", Image: "i9"}}
		v.Status.ConditionalUpdates = []configv1.ConditionalUpdate{
			{Release: configv1.Release{Version: "4.19.10", Image: "i10"}, Risks: []configv1.ConditionalUpdateRisk{{
				Name:    "Slow",
				Message: "it is slow",
			}}, Conditions: []metav1.Condition{{Type: "Recommended", Status: "Unknown"}}},
			{
				Release: configv1.Release{Version: "4.19.11", Image: "i11"}, Risks: []configv1.ConditionalUpdateRisk{{Name: "Slow"}},
				Conditions: []metav1.Condition{{Type: "Recommended", Status: "True"}},
			},
		}
		v.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{
			Type: configv1.RetrievedUpdates, Status: configv1.ConditionFalse,
			Message: "no route",
		}}
	}),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "admin-gates"},
			Data:       map[string]string{"ack-4.19-b": "check b", "ack-4.19-a": "check a", "ack-4.19-c": "check c"},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "admin-acks"},
			Data:       map[string]string{"ack-4.19-b": "true", "ack-4.19-c": "false"},
		},
		operator("dns", configv1.OperatorAvailable, configv1.ConditionTrue), operator("etcd", configv1.OperatorDegraded,
			configv1.ConditionTrue),
		operator("ingress", configv1.OperatorAvailable, configv1.ConditionFalse),
		operator("network", configv1.OperatorDegraded, configv1.ConditionFalse),
		pool("busy", func(p *machineconfigurationv1.MachineConfigPool) {
			p.Status.Conditions = []machineconfigurationv1.MachineConfigPoolCondition{{
				Type:   machineconfigurationv1.MachineConfigPoolUpdating,
				Status: corev1.ConditionTrue,
			}}
		}),
		pool("infra", degraded), pool("arbiter", paused), pool("master", paused), pool("worker", paused),
	)
	seen, err := c.Observe(t.Context(), client.ObjectKey{})
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen).To(Equal(workload.ClusterVersion{
		ResourceVersion: c.version().ResourceVersion, Runs: "4.19.3", Upgrading: "4.19.8", Former: []string{"4.19.5"}, Channel: "stable-4.19",
		Requested: workload.Update{Version: "4.19.9", Image: "image", Force: true},
		Offers: []workload.Offer{
			{Version: "4.19.9", Image: "i9"},
			{Version: "4.19.10", Image: "i10", Risks: []workload.Risk{{Name: "Slow", Message: "it is slow"}}},
			{Version: "4.19.11", Image: "i11"},
		},
		NoOffers: "no route",
		Gates: []workload.Gate{
			{Name: "ack-4.19-a", Message: "check a"},
			{Name: "ack-4.19-b", Message: "check b", Acknowledged: true},
			{Name: "ack-4.19-c", Message: "check c"},
		},
		Images: []string{"i8", "i5", "i3"},
		Unhealthy: []workload.Ailment{
			{Operator: "etcd", Message: "ClusterOperator etcd is degraded"},
			{Operator: "ingress", Message: "ClusterOperator ingress is not available"},
			{Message: "MachineConfigPool arbiter is paused, so that no upgrade ends"},
			{Message: "MachineConfigPool infra is degraded (no such file)"},
			{Message: "MachineConfigPool master is paused, so that no upgrade ends"},
		},
	}))
}

func TestRequestUpdateKeepsOtherFields(t *testing.T) {
	c := newCluster(t, version(func(v *configv1.ClusterVersion) {
		v.Spec.DesiredUpdate = &configv1.Update{Image: "former", Force: true}
	}))
	before := c.version()
	request := workload.UpdateRequest{ResourceVersion: before.ResourceVersion, Update: &workload.Update{Version: "4.19.9"}}
	c.Expect(c.RequestUpdate(t.Context(), client.ObjectKey{}, request)).To(Succeed())
	after := c.version()
	c.Expect(after.Spec.DesiredUpdate).To(Equal(&configv1.Update{Version: "4.19.9"}), "the former image belongs to another version")
	c.Expect(after.Spec.ClusterID).To(BeEquivalentTo("id"))
	c.Expect(after.Spec.Channel).To(Equal("stable-4.19"))

	c.Expect(apierrors.IsConflict(c.RequestUpdate(t.Context(), client.ObjectKey{}, request))).To(BeTrue(),
		"the ClusterVersion changed since it was read")

	seen, err := c.Observe(t.Context(), client.ObjectKey{})
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.Ours).To(BeTrue())

	request = workload.UpdateRequest{ResourceVersion: after.ResourceVersion, Channel: "eus-4.20"}
	c.Expect(c.RequestUpdate(t.Context(), client.ObjectKey{}, request)).To(Succeed())
	c.Expect(c.version().Spec.Channel).To(Equal("eus-4.20"))
	c.Expect(c.version().Spec.DesiredUpdate.Version).To(Equal("4.19.9"))

	other := c.version()
	other.Spec.DesiredUpdate.Version = "4.19.11"
	c.Expect(c.Update(t.Context(), other, client.FieldOwner("oc"))).To(Succeed())
	seen, err = c.Observe(t.Context(), client.ObjectKey{})
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.Ours).To(BeFalse(), "another client changed it")

	c.Expect(c.RequestUpdate(t.Context(), client.ObjectKey{}, workload.UpdateRequest{
		ResourceVersion: c.version().ResourceVersion,
		Withdraw:        true,
	})).To(Succeed())
	c.Expect(c.version().Spec.DesiredUpdate).To(BeNil())
	c.Expect(c.version().Spec.Channel).To(Equal("eus-4.20"))
}

func TestAcknowledgementsAreAdded(t *testing.T) {
	c := newCluster(t, version(nil))
	acknowledged := func() map[string]string {
		found := &corev1.ConfigMap{}
		c.Expect(c.Get(t.Context(), acknowledgementKey, found)).To(Succeed())
		return found.Data
	}
	before := c.version().ResourceVersion
	c.Expect(c.RequestUpdate(t.Context(), client.ObjectKey{}, workload.UpdateRequest{Acknowledge: []string{"a"}})).To(Succeed())
	c.Expect(acknowledged()).To(Equal(map[string]string{"a": "true"}))
	c.Expect(c.RequestUpdate(t.Context(), client.ObjectKey{}, workload.UpdateRequest{Acknowledge: []string{"b"}})).To(Succeed())
	c.Expect(acknowledged()).To(Equal(map[string]string{"a": "true", "b": "true"}))
	c.Expect(c.version().ResourceVersion).To(Equal(before), "no release is requested")
}

func TestOffersOfClusterThatRecordsRisks(t *testing.T) {
	risk := func(name string, applies metav1.ConditionStatus) configv1.ConditionalUpdateRisk {
		return configv1.ConditionalUpdateRisk{Name: name, Conditions: []metav1.Condition{{Type: "Applies", Status: applies}}}
	}
	update := func(image string, recommended metav1.ConditionStatus, risks ...configv1.ConditionalUpdateRisk) configv1.ConditionalUpdate {
		u := configv1.ConditionalUpdate{
			Release: configv1.Release{Version: "4.19.9", Image: image}, Risks: risks,
			Conditions: []metav1.Condition{{Type: "Recommended", Status: recommended}},
		}
		for _, r := range risks {
			u.RiskNames = append(u.RiskNames, r.Name)
		}
		return u
	}
	c := newCluster(t, version(func(v *configv1.ClusterVersion) {
		v.Spec.DesiredUpdate = &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "Ours"}, {Name: "Theirs"}}}
		v.Status.AvailableUpdates = []configv1.Release{{Version: "4.19.9", Image: "accepted"}, {Version: "4.19.9", Image: "harmless"}}
		v.Status.ConditionalUpdates = []configv1.ConditionalUpdate{
			update("accepted", "True", risk("Ours", "True"), risk("Elsewhere", "False")),
			update("harmless", "True", risk("Elsewhere", "False")),
			update("risky", "False", risk("Slow", "True"), risk("Perhaps", "Unknown"), risk("Elsewhere", "False")),
		}
		v.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: string(fieldOwner), Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
			APIVersion: configv1.GroupVersion.String(), FieldsV1: &metav1.FieldsV1{
				Raw: []byte(`{"f:spec":{"f:desiredUpdate":{"f:acceptRisks":{"k:{\"name\":\"Ours\"}":{".":{},"f:name":{}}}}}}`),
			},
		}}
	}))
	seen, err := c.Observe(t.Context(), client.ObjectKey{})
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.RecordsRisks).To(BeTrue())
	c.Expect(seen.Ours).To(BeFalse(), "no version of ours is requested")
	c.Expect(seen.AcceptedRisks).To(Equal([]workload.AcceptedRisk{{Name: "Ours", Ours: true}, {Name: "Theirs"}}))
	c.Expect(seen.Offers).To(Equal([]workload.Offer{
		{Version: "4.19.9", Image: "harmless"},
		{Version: "4.19.9", Image: "accepted", Risks: []workload.Risk{{Name: "Ours"}}},
		{Version: "4.19.9", Image: "harmless"},
		{Version: "4.19.9", Image: "risky", Risks: []workload.Risk{{Name: "Slow"}, {Name: "Perhaps"}}},
	}), "the spec of the control plane decides which risks are accepted")
}

func TestAcceptedRisksAreWrittenAndRemoved(t *testing.T) {
	c := newCluster(t, version(nil))
	request := func(change workload.UpdateRequest) *configv1.Update {
		change.ResourceVersion = c.version().ResourceVersion
		c.Expect(c.RequestUpdate(t.Context(), client.ObjectKey{}, change)).To(Succeed())
		return c.version().Spec.DesiredUpdate
	}
	update := &workload.Update{Version: "4.19.9", Image: "image"}
	risks := []configv1.AcceptRisk{{Name: "Slow"}, {Name: "Theirs"}}
	c.Expect(request(workload.UpdateRequest{Update: update, AcceptRisks: []string{"Slow", "Theirs"}}).AcceptRisks).To(Equal(risks))
	c.Expect(request(workload.UpdateRequest{Update: update}).AcceptRisks).To(Equal(risks), "nil keeps them")
	c.Expect(request(workload.UpdateRequest{Withdraw: true, AcceptRisks: []string{"Theirs"}})).To(Equal(
		&configv1.Update{AcceptRisks: risks[1:]}))
	c.Expect(request(workload.UpdateRequest{Update: update, AcceptRisks: []string{}}).AcceptRisks).To(BeNil())
	c.Expect(request(workload.UpdateRequest{Withdraw: true, AcceptRisks: []string{}})).To(BeNil())

	change, changes := desiredUpdate(workload.UpdateRequest{Update: update, AcceptRisks: []string{}})
	c.Expect(changes).To(BeTrue())
	c.Expect(json.Marshal(change)).To(ContainSubstring(`"acceptRisks":null`), "the schema refuses an empty list")
}
