package config

import (
	"strings"
	"testing"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
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

func TestForeignHostIsRefused(t *testing.T) {
	w := booted(t)
	w.create(discovered("impostor", "m", "02:00:00:00:00:66"))
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	if spec := w.agent("impostor").Spec; spec.Approved || spec.ClusterDeploymentName != nil || spec.Hostname != "" {
		t.Fatalf("the impostor was told something: %+v", spec)
	}
	if e := w.event(); !strings.Contains(e, "HostRefused") || !strings.Contains(e, "02:00:00:00:00:66") {
		t.Fatalf("event: %s", e)
	}
	w.reconcile()
	if e := w.event(); e != "" {
		t.Fatalf("told twice: %s", e)
	}

	w.create(discovered("right", "m", bootMAC))
	w.reconcile()
	if w.agent("right").Spec.ClusterDeploymentName == nil || w.agent("impostor").Spec.ClusterDeploymentName != nil {
		t.Fatal("the right host must be bound, and no other")
	}
}

func TestHostThatBootedAnotherImage(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "elsewhere", bootMAC))
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	if w.agent("a").Spec.ClusterDeploymentName != nil {
		t.Fatal("bound")
	}
}

func TestLateWorkerWaitsForTheClusterToAcceptHosts(t *testing.T) {
	w := booted(t)
	install := read(w, "cp", lab()["install"])
	w.setState(install, "installing")
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
	if w.agent("a").Spec.ClusterDeploymentName != nil {
		t.Fatal("bound while the cluster installs")
	}
	w.setState(install, "adding-hosts")
	w.reconcile()
	if w.agent("a").Spec.ClusterDeploymentName == nil {
		t.Fatal("not bound")
	}
}

// TestWorkerOfAClusterThatIsInstalledAlone covers single nodes: one known host more, and assisted-service would never start.
func TestWorkerOfAClusterThatIsInstalledAlone(t *testing.T) {
	w := booted(t)
	install := read(w, "cp", &hiveext.AgentClusterInstall{})
	w.change(install, func() { install.Spec.ProvisionRequirements = hiveext.ProvisionRequirements{ControlPlaneAgents: 1} })
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
	if w.agent("a").Spec.ClusterDeploymentName != nil {
		t.Fatal("bound although the cluster is installed without workers")
	}
	w.setState(install, "adding-hosts")
	w.reconcile()
	if w.agent("a").Spec.ClusterDeploymentName == nil {
		t.Fatal("not bound after the installation")
	}
}

// TestNoHostForAClusterThatIsRegisteredAnew covers an assisted-service whose database came back empty or older: it would install the host into a cluster that does
// not exist.
func TestNoHostForAClusterThatIsRegisteredAnew(t *testing.T) {
	runs := func(w *world) {
		w.create(&clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp-0", Labels: map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""}},
			Spec:       clusterv1.MachineSpec{ClusterName: "c", ProviderID: "metal3://x", InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: metal3.MachineKind, Name: "cp-0"}},
		})
	}
	stated := func(w *world) {
		deployment := read(w, "cp", &hivev1.ClusterDeployment{})
		w.change(deployment, func() { deployment.Spec.Installed = true })
	}
	for evidence, show := range map[string]func(w *world){"the control plane has Nodes": runs, "the ClusterDeployment says that it is installed": stated} {
		t.Run(evidence, func(t *testing.T) {
			w := booted(t)
			show(w)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterRegisteredAnewReason)
			if w.agent("a").Spec.ClusterDeploymentName != nil {
				t.Fatal("bound")
			}
			w.setState(read(w, "cp", &hiveext.AgentClusterInstall{}), "adding-hosts")
			w.reconcile()
			if w.agent("a").Spec.ClusterDeploymentName == nil {
				t.Fatal("not bound to the cluster that was imported")
			}
		})
		t.Run(evidence+", and the host was bound before", func(t *testing.T) {
			w := booted(t)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.registerWithCluster("a", "known")
			show(w)
			w.reconcile()
			w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterRegisteredAnewReason)
			if w.agent("a").Spec.Approved {
				t.Fatal("approved")
			}
		})
	}
}

func TestHostsOfAClusterThatComesBackAreWoken(t *testing.T) {
	before, after := &hiveext.AgentClusterInstall{}, &hiveext.AgentClusterInstall{}
	before.Status.DebugInfo.State, after.Status.DebugInfo.State = "insufficient", "adding-hosts"
	if !installationChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Fatal("both accept hosts, but not the same")
	}
}

// TestApprovalFromAnEarlierLife covers a host that was unbound: its approval stays on the Agent, and would install it as soon as it is bound.
func TestApprovalFromAnEarlierLife(t *testing.T) {
	w := booted(t)
	agent := discovered("a", "m", bootMAC)
	agent.Spec.Approved = true
	w.create(agent)
	w.reconcile()
	bound := w.agent("a")
	if bound.Spec.ClusterDeploymentName == nil {
		t.Fatal("not bound")
	}
	if bound.Spec.Approved {
		t.Fatal("approved before the service has taken in what the host is told")
	}
}

// TestApprovalIsNotTakenBack covers a cache that does not have our approval yet: what it shows looks like an Agent that is to be told everything first.
func TestApprovalIsNotTakenBack(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	before := w.agent("a")
	w.reconcile()
	if !w.agent("a").Spec.Approved {
		t.Fatal("not approved")
	}
	w.outdated = before
	w.outdated.ResourceVersion = "1"
	w.outdated.Status.DebugInfo.State = "preparing-for-installation"
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "m"}})
	if !apierrors.IsConflict(err) {
		t.Fatalf("no conflict: %v", err)
	}
	if !w.agent("a").Spec.Approved {
		t.Fatal("the approval was taken back")
	}
}

// TestRefusedBindingIsTakenBack covers the race in which the installation starts between our look and our write.
func TestRefusedBindingIsTakenBack(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.setState(read(w, "cp", lab()["install"]), "preparing-for-installation")
	agent := w.agent("a")
	w.change(agent, func() {
		agent.Status.Conditions[0] = conditionsv1.Condition{Type: aiv1beta1.SpecSyncedCondition, Status: corev1.ConditionFalse, Reason: "InputError"}
	})
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
	if w.agent("a").Spec.ClusterDeploymentName != nil {
		t.Fatal("still bound")
	}
}

func TestInstalledHostIsNeverInstalledAgain(t *testing.T) {
	for name, installed := range map[string]func(w *world){
		"its Node is known": func(w *world) {
			machine := read(w, "m", &clusterv1.Machine{})
			w.change(machine, func() { machine.Status.NodeRef.Name = "rack1-u7" })
		},
		"it has a providerID, which Metal3 sets from the Node": func(w *world) {
			machine := read(w, "m", &clusterv1.Machine{})
			w.change(machine, func() { machine.Spec.ProviderID = "metal3://lab/rack1-u7/m" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := booted(t)
			installed(w)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.HostBootedDiscoveryAgainReason)
			if spec := w.agent("a").Spec; spec.Approved || spec.ClusterDeploymentName != nil || spec.Role != "" {
				t.Fatalf("the Agent was told something: %+v", spec)
			}
		})
	}
}

// TestMovedMachine is the world after clusterctl move: no status, no InfraEnv, a Machine that runs.
func TestMovedMachine(t *testing.T) {
	objects := lab()
	machine, _ := objects["machine"].(*clusterv1.Machine)
	machine.Spec.Bootstrap.DataSecretName = ptr.To("m")
	machine.Status.NodeRef.Name = "rack1-u7"
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	if w.config().Status.DataSecretName != "m" {
		t.Fatal("the data secret is not restored")
	}
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "m"}, &aiv1beta1.InfraEnv{}); !apierrors.IsNotFound(err) {
		t.Fatalf("an InfraEnv was made for a host that is installed: %v", err)
	}
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

func TestBareMetalHostWithoutAddress(t *testing.T) {
	w := booted(t)
	host := bareMetalHost()
	read(w, host.Name, host)
	w.change(host, func() { host.Spec.BootMACAddress = "" })
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostIdentityReason)
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
