package hostconfig

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func TestInstallationChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*hiveext.AgentClusterInstall)
		matters bool
	}{
		"progress":              {func(i *hiveext.AgentClusterInstall) { i.Status.Progress.TotalPercentage = 50 }, false},
		"hosts are accepted":    {func(i *hiveext.AgentClusterInstall) { i.Status.DebugInfo.State = "adding-hosts" }, true},
		"failure":               {func(i *hiveext.AgentClusterInstall) { i.Status.DebugInfo.State = "error" }, true},
		"state no longer known": {func(i *hiveext.AgentClusterInstall) { i.Status.DebugInfo.State = "" }, true},
		"workers requested":     {func(i *hiveext.AgentClusterInstall) { i.Spec.ProvisionRequirements.WorkerAgents = 2 }, true},
		"certificates of the machine config server known": {func(i *hiveext.AgentClusterInstall) {
			i.Annotations = map[string]string{bootstrapv1.MachineConfigServerCAAnnotation: "PEM"}
		}, true},
		"another mirror registry": {func(i *hiveext.AgentClusterInstall) {
			i.Spec.MirrorRegistryRef = &hiveext.MirrorRegistryConfigMapReference{Name: "m"}
		}, true},
	} {
		before, _ := lab()["install"].(*hiveext.AgentClusterInstall)
		before.Spec.ProvisionRequirements.WorkerAgents = 0
		before.Status.DebugInfo.State = "installing"
		after := before.DeepCopy()
		tc.change(after)
		NewWithT(t).Expect(informer.InstallationChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(tc.matters),
			name)
	}
}

// TestEventThatCannotBeMapped: without an answer of the cache the event is lost, which the log reports.
func TestEventThatCannotBeMapped(t *testing.T) {
	g := NewWithT(t)
	failing := interceptor.NewClient(newWorld(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no cache")
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no cache")
		},
	})
	r := New(Options{Client: failing})
	r.metal3.Store(true)
	objects := lab()
	for name, mapped := range map[string]func(context.Context) []ctrl.Request{
		"Machine":           func(ctx context.Context) []ctrl.Request { return r.ofMachine(ctx, objects["machine"]) },
		"Cluster":           func(ctx context.Context) []ctrl.Request { return r.ofCluster(ctx, objects["cluster"]) },
		"Agent":             func(ctx context.Context) []ctrl.Request { return r.ofAgent(ctx, discovered("a", "m", bootMAC)) },
		"BareMetalHost":     func(ctx context.Context) []ctrl.Request { return r.ofHost(ctx, bareMetalHost()) },
		"ClusterDeployment": func(ctx context.Context) []ctrl.Request { return r.ofInstallation(ctx, objects["deployment"]) },
		"Secret":            func(ctx context.Context) []ctrl.Request { return r.ofSecret(ctx, objects["pullSecret"]) },
		"NMStateConfig": func(ctx context.Context) []ctrl.Request {
			return r.ofNMStateConfig(ctx, staticNetwork("n", bootMAC, nil))
		},
	} {
		logged := 0
		log := funcr.New(func(string, string) { logged++ }, funcr.Options{})
		g.Expect(mapped(ctrl.LoggerInto(t.Context(), log))).To(BeEmpty(), name)
		g.Expect(logged).NotTo(BeZero(), "%s: logged", name)
	}
}

func TestHostsOfRestoredClusterAreReconciled(t *testing.T) {
	for situation, states := range map[string][2]string{
		"both accept hosts, but not the same": {"insufficient", "adding-hosts"},
		"registered":                          {"", "insufficient"},
	} {
		before, after := &hiveext.AgentClusterInstall{}, &hiveext.AgentClusterInstall{}
		before.Status.DebugInfo.State, after.Status.DebugInfo.State = states[0], states[1]
		NewWithT(t).Expect(informer.InstallationChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue(), situation)
	}
}

// TestChangesOfEachKindReconcileConfig: without the watch of a kind, only the next resync of the cache would
// show its changes, hours later.
func TestChangesOfEachKindReconcileConfig(t *testing.T) {
	objects := lab()
	ours, _ := objects["config"].(*bootstrapv1.OpenshiftAssistedConfig)
	ours.Spec.MirrorRegistryRef = &corev1.LocalObjectReference{Name: "authorities"}
	ours.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: "pull-secret"}
	ours.Spec.NMStateConfigLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"network": "lab"}}
	world := newWorld(t, slices.Collect(maps.Values(objects))...)
	r := world.reconciler
	watches, err := kubetest.NewWatches(t.Context(), world.WithWatch, r.SetupWithManager, metal3api.GroupVersion.WithKind(metal3.HostKind))
	world.Expect(err).NotTo(HaveOccurred())
	wanted := client.ObjectKeyFromObject(ours)

	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	infraMachine := &unstructured.Unstructured{}
	infraMachine.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1",
		Kind: metal3.MachineKind,
	})
	infraMachine.SetNamespace(namespace)
	infraMachine.SetName("m")
	world.Expect(r.watchInfraMachine(t.Context(), infraMachine)).To(Succeed())
	secret, authorities := kube.MetadataOf(kube.Secret), kube.MetadataOf(kube.ConfigMap)
	secret.ObjectMeta, authorities.ObjectMeta = named("pull-secret"), named("authorities")
	network := staticNetwork("n", bootMAC, map[string]string{"network": "lab"})
	infraEnv := &aiv1beta1.InfraEnv{ObjectMeta: named("m")}
	infraEnv.Labels = map[string]string{bootstrapv1.ConfigNameLabel: "m"}
	agent := discovered("a", "m", bootMAC)
	// ours waits for the end of the claim of another config on its Agent.
	other := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: named("other")}
	other.Status.AgentRef = &corev1.LocalObjectReference{Name: agent.Name}
	_, err = r.claims.RecordedBy(t.Context(), scope.New(&facts.Facts{Config: ours}), []*aiv1beta1.Agent{agent})
	world.Expect(err).NotTo(HaveOccurred())
	for _, obj := range []client.Object{
		ours, other, objects["machine"], objects["cluster"], infraEnv, agent, network,
		objects["deployment"], objects["install"], secret, authorities, bareMetalHost(), infraMachine,
	} {
		world.Eventually(func() ([]ctrl.Request, error) { return watches.Created(obj) }).WithTimeout(10*time.Second).
			Should(ContainElement(ctrl.Request{NamespacedName: wanted}), "%T %s", obj, obj.GetName())
	}
	world.Expect(watches.Kinds()).To(ConsistOf("OpenshiftAssistedConfig", "Machine", "Cluster", "InfraEnv", "Agent", "NMStateConfig",
		"ClusterDeployment",
		"AgentClusterInstall", "Secret", "ConfigMap", metal3.HostKind, metal3.MachineKind))
}
