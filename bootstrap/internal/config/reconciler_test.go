package config

import (
	"strings"
	"testing"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
)

// TestHostIsInstalled is the whole story of one host with a live ISO.
func TestHostIsInstalled(t *testing.T) {
	w := newWorld(t, values(lab())...)

	w.reconcile()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	if infraEnv.Spec.ClusterRef != nil || len(infraEnv.OwnerReferences) > 0 || infraEnv.Spec.OSImageVersion != "4.19" || infraEnv.Spec.PullSecretRef.Name != "pull-secret" {
		t.Fatalf("InfraEnv: %+v", infraEnv)
	}
	if w.config().Status.DataSecretName != "" || bootmode.BootsFrom(w.infraMachine(), isoURL) {
		t.Fatal("nothing may be handed out before there is an image")
	}

	w.makeImage()
	w.reconcile()
	if !bootmode.BootsFrom(w.infraMachine(), isoURL) {
		t.Fatalf("boot image: %v", w.infraMachine().Object["spec"])
	}
	secret := read(w, "m", &corev1.Secret{})
	if secret.Type != clusterv1.ClusterSecretType || secret.Labels[clusterv1.ClusterNameLabel] != "c" || !metav1.IsControlledBy(secret, w.config()) ||
		string(secret.Data["value"]) != `{"ignition":{"version":"3.1.0"}}` {
		t.Fatalf("bootstrap data: %+v", secret)
	}
	if status := w.config().Status; status.DataSecretName != "m" || !ptr.Deref(status.Initialization.DataSecretCreated, false) || status.BootMode != bootstrapv1.BootModeLiveISO {
		t.Fatalf("status: %+v", status)
	}
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)

	w.create(bareMetalHost())
	w.reconcile()
	mute := discovered("a", "m", strings.ToUpper(bootMAC))
	mute.Status = aiv1beta1.AgentStatus{}
	w.create(mute)
	w.reconcile()
	w.change(mute, func() { mute.Status = discovered("a", "m", strings.ToUpper(bootMAC)).Status })
	w.reconcile()
	agent := w.agent("a")
	if agent.Spec.ClusterDeploymentName == nil || agent.Spec.Approved || agent.Spec.Hostname != "rack1-u7" || agent.Spec.Role != "worker" ||
		agent.Spec.NodeLabels["metal3.io/uuid"] != "bmh-uid" || agent.Spec.IgnitionConfigOverrides == "" {
		t.Fatalf("Agent: %+v", agent.Spec)
	}
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.HostBindingReason)

	w.registerWithCluster("a", "insufficient")
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	if !w.agent("a").Spec.Approved {
		t.Fatal("not approved")
	}
	w.lasts(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForInstallationReason)

	for state, reason := range map[string]string{"installing": bootstrapv1.HostInstallingReason, "installing-in-progress": bootstrapv1.HostInstallingReason} {
		w.enter("a", state)
		w.reconcile()
		w.lasts(bootstrapv1.HostInstalledCondition, metav1.ConditionFalse, reason)
	}
	w.enter("a", "installed")
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)

	before := w.writes
	for range 3 {
		w.reconcile()
	}
	if w.writes != before {
		t.Errorf("an installed world is written to %d times", w.writes-before)
	}
	// Finalizer, InfraEnv, boot image, bootstrap data, protection of the Machine, binding, approval; the status when the data is handed out, the host identified, waits for
	// the installation, is being installed, and is installed.
	if before != 12 || w.reports != 5 {
		t.Errorf("%d writing requests for one host, %d of them to the status", before, w.reports)
	}
	var events []string
	for e := w.event(); e != ""; e = w.event() {
		events = append(events, strings.Fields(e)[1])
	}
	if told := strings.Join(events, " "); told != "HostApproved HostInstalled" {
		t.Errorf("events: %s", told)
	}
}

// registerWithCluster is assisted-service after the agent registered with the cluster that it was bound to.
func (w *world) registerWithCluster(name, state string) {
	w.Helper()
	agent := w.agent(name)
	w.change(agent, func() {
		agent.Status.DebugInfo.State = state
		agent.Status.Role = agent.Spec.Role
		agent.Status.Conditions = []conditionsv1.Condition{
			{Type: aiv1beta1.SpecSyncedCondition, Status: corev1.ConditionTrue, Reason: "SyncOK"},
			{Type: aiv1beta1.BoundCondition, Status: corev1.ConditionTrue, Reason: "Bound"},
		}
	})
}

func (w *world) enter(name, state string) {
	w.Helper()
	agent := w.agent(name)
	w.change(agent, func() { agent.Status.DebugInfo.State = state })
}

// booted is a world in which the bootstrap data is handed out and the host is chosen.
func booted(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, append(values(lab()), objects...)...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.create(bareMetalHost())
	return w
}

// TestNodeBeforeTheEndOfTheInstallation is a Node that registers while assisted-service still works on its host.
func TestNodeBeforeTheEndOfTheInstallation(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	w.enter("a", "installing-in-progress")
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() { machine.Status.NodeRef.Name = "rack1-u7" })
	w.remove(read(w, "rack1-u7", bareMetalHost()))
	w.reconcile()
	w.lasts(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.HostInstallingReason)
	w.enter("a", "installed")
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	if w.config().Status.InstallationProgress != "Done" {
		t.Fatal(w.config().Status.InstallationProgress)
	}
}

func TestWhatIsWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(objects map[string]client.Object)
		reason string
	}{
		"no Machine":                {func(o map[string]client.Object) { delete(o, "machine") }, bootstrapv1.WaitingForMachineReason},
		"no Cluster":                {func(o map[string]client.Object) { delete(o, "cluster") }, bootstrapv1.WaitingForClusterInfrastructureReason},
		"no ClusterDeployment":      {func(o map[string]client.Object) { delete(o, "deployment") }, bootstrapv1.WaitingForClusterDeploymentReason},
		"no infrastructure machine": {func(o map[string]client.Object) { delete(o, "metal3") }, bootstrapv1.WaitingForInfraMachineReason},
		"no pull secret":            {func(o map[string]client.Object) { delete(o, "pullSecret") }, bootstrapv1.PullSecretMissingReason},
		"an InfraEnv of someone's": {func(o map[string]client.Object) {
			o["ie"] = &aiv1beta1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}
		}, bootstrapv1.InfraEnvNotOursReason},
		"an override that is broken": {func(o map[string]client.Object) {
			o["config"].SetAnnotations(map[string]string{bootstrapv1.DiscoveryIgnitionOverrideAnnotation: "{"})
		}, bootstrapv1.InvalidConfigurationReason},
		"a MachinePool": {func(o map[string]client.Object) {
			delete(o, "machine")
			o["config"].SetOwnerReferences([]metav1.OwnerReference{{Kind: "MachinePool", Name: "p", APIVersion: "v1", UID: "u"}})
		}, bootstrapv1.MachinePoolNotSupportedReason},
	} {
		t.Run(name, func(t *testing.T) {
			objects := lab()
			tc.change(objects)
			w := newWorld(t, values(objects)...)
			w.reconcile()
			w.lasts(bootstrapv1.ReadyCondition, metav1.ConditionFalse, tc.reason)
			before := w.writes
			w.reconcile()
			if w.writes != before {
				t.Errorf("waiting writes")
			}
		})
	}
}

func TestPausedWritesOnlyItsCondition(t *testing.T) {
	objects := lab()
	cluster, _ := objects["cluster"].(*clusterv1.Cluster)
	cluster.Spec.Paused = ptr.To(true)
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.wants(clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason)
	if w.writes != 1 || len(w.config().Finalizers) > 0 || len(w.config().Status.Conditions) != 1 {
		t.Fatalf("%d writes, %+v", w.writes, w.config())
	}
}

func (w *world) setState(obj client.Object, state string) {
	w.Helper()
	install := installOf(w, obj)
	w.change(install, func() { install.Status.DebugInfo.State = state })
}
