package inplace

import (
	"cmp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// observed are the states of all clusters.
type observed map[client.ObjectKey]workload.State

func (o observed) View(cluster client.ObjectKey) (workload.State, bool) {
	state, known := o[cluster]
	return state, known
}

// of returns the state of one cluster.
func of(state workload.State) observed { return observed{{Namespace: "lab", Name: "c"}: state} }

const ours, others = "OpenshiftAssistedConfigTemplate", "KubeadmConfigTemplate"

// machineSet returns a MachineSet with a template.
func machineSet(version, kind string) hooksv1.CanUpdateMachineSetRequestObjects {
	var objects hooksv1.CanUpdateMachineSetRequestObjects
	objects.MachineSet.Namespace = "lab"
	spec := &objects.MachineSet.Spec.Template.Spec
	spec.ClusterName, spec.Version = "c", version
	spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: kind, Name: "w"}
	return objects
}

// inTopology makes a MachineSet belong to a topology.
func inTopology(objects hooksv1.CanUpdateMachineSetRequestObjects) hooksv1.CanUpdateMachineSetRequestObjects {
	objects.MachineSet.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""}
	return objects
}

func TestCanUpdateMachineSet(t *testing.T) {
	upgraded := workload.State{Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.8"}
	patch := `{"spec":{"template":{"spec":{"version":"v1.32.8"}}}}`
	for name, test := range map[string]struct {
		current, wanted hooksv1.CanUpdateMachineSetRequestObjects
		known           observed
		patch, reason   string
	}{
		"newer version": {current: machineSet("v1.32.7", ours), wanted: machineSet("v1.32.8", ours), known: of(upgraded), patch: patch},
		"API servers were updated, the upgrade goes on": {
			current: machineSet("v1.32.7", ours), wanted: machineSet("v1.32.8", ours),
			known: of(workload.State{Connected: true, Upgrading: "4.19.11", KubernetesVersion: "v1.32.8", APIServersVersion: "1.32.8"}),
			patch: patch,
		},
		"API servers are being updated": {
			current: machineSet("v1.32.7", ours), wanted: machineSet("v1.32.8", ours),
			known:  of(workload.State{Connected: true, Upgrading: "4.19.11", KubernetesVersion: "v1.32.8", APIServersVersion: "1.32.7"}),
			reason: "The API servers of the cluster run v1.32.7, not v1.32.8",
		},
		"version removed": {
			current: machineSet("v1.32.7", ours), wanted: machineSet("", ours), known: of(upgraded),
			patch: `{"spec":{"template":{"spec":{"version":null}}}}`,
		},
		"cluster is not upgraded": {
			current: machineSet("v1.32.7", ours), wanted: machineSet("v1.32.9", ours), known: of(upgraded),
			reason: "The API servers of the cluster run v1.32.8, not v1.32.9. If the cluster is not being upgraded, set spec.distributionVersion",
		},
		"cluster of a topology is not upgraded": {
			current: machineSet("v1.32.7", ours), wanted: inTopology(machineSet("v1.32.9", ours)), known: of(upgraded),
			reason: "set the variable of the Cluster's topology that sets spec.distributionVersion",
		},
		"release as version": {
			current: machineSet("v1.32.7", ours), wanted: machineSet("v4.20.8", ours), known: of(upgraded),
			reason: "v4.20.8 is a release of OpenShift: set the Kubernetes version",
		},
		"cluster state unknown": {
			current: machineSet("v1.32.7", ours), wanted: machineSet("v1.32.8", ours), known: of(workload.State{}),
			reason: "the Kubernetes version of cluster c is unknown",
		},
		"cluster of another manager": {
			current: machineSet("v1.32.7", ours), wanted: machineSet("v1.32.8", ours), known: observed{},
			reason: "does not reconcile cluster lab/c",
		},
		"same version":                 {current: machineSet("v1.32.7", ours), wanted: machineSet("v1.32.7", ours)},
		"workers of another provider":  {current: machineSet("v1.32.1", others), wanted: machineSet("v1.33.1", others)},
		"template of another provider": {current: machineSet("v1.32.7", ours), wanted: machineSet("v1.33.1", others)},
		"former template of another":   {current: machineSet("v1.33.1", others), wanted: machineSet("v1.32.7", ours)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			resp := &hooksv1.CanUpdateMachineSetResponse{}
			(&Extension{Workloads: test.known}).CanUpdateMachineSet(t.Context(),
				&hooksv1.CanUpdateMachineSetRequest{Current: test.current, Desired: test.wanted}, resp)
			g.Expect(resp.MachineSetPatch.IsDefined()).To(Equal(test.patch != ""))
			g.Expect(resp.InfrastructureMachineTemplatePatch.IsDefined() || resp.BootstrapConfigTemplatePatch.IsDefined()).To(BeFalse(),
				"installation settings do not apply to installed hosts")
			if test.reason != "" {
				g.Expect(resp.GetStatus()).To(Equal(hooksv1.ResponseStatusFailure), "a success without a patch would replace hosts")
				g.Expect(resp.GetMessage()).To(ContainSubstring(test.reason))
				return
			}
			g.Expect(resp.GetStatus()).To(Equal(hooksv1.ResponseStatusSuccess))
			if test.patch != "" {
				g.Expect(resp.MachineSetPatch.PatchType).To(Equal(hooksv1.JSONMergePatchType))
				g.Expect(resp.MachineSetPatch.Patch).To(MatchJSON(test.patch))
			}
		})
	}
}

func TestUpdateMachine(t *testing.T) {
	node := func(kubelet string) []workload.Node {
		return []workload.Node{{Name: "other", KubeletVersion: "v1.32.8"}, {Name: "n1", KubeletVersion: kubelet}}
	}
	for name, test := range map[string]struct {
		known observed
		// version is that of the Machine, wanted that of its MachineDeployment. The default of both is v1.32.8.
		version, wanted string
		waits           string
	}{
		"Node runs the version": {known: of(workload.State{
			Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.8", Nodes: node("v1.32.8"),
		})},
		"Node runs a newer version": {known: of(workload.State{
			Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.9", Nodes: node("v1.32.9"),
		})},
		"API down after the update": {known: of(workload.State{Nodes: node("v1.32.8")})},
		"no version":                {version: "-", wanted: "-", known: observed{}},
		"version reverted": {wanted: "v1.32.7", known: of(workload.State{
			Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.7",
			Nodes: node("v1.32.7"),
		})},
		"MachineDeployment is newer": {wanted: "v1.32.9", known: of(workload.State{
			Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.8",
			Nodes: node("v1.32.7"),
		}), waits: "the kubelet of Node n1 has version v1.32.7"},
		"Node runs the old version": {
			known: of(workload.State{Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.8", Nodes: node("v1.32.7")}),
			waits: "the kubelet of Node n1 has version v1.32.7, its MachineConfigPool has not updated it to v1.32.8 yet",
		},
		"paused pool": {
			known: of(workload.State{
				Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.8", Nodes: node("v1.32.7"),
				Pools: []workload.Pool{
					{Name: "gpu", Degraded: "disk full"},
					{Name: "infra", Behind: true},
					{Name: "worker", Paused: true},
				},
			}),
			waits: "to v1.32.8 yet (gpu, worker paused or degraded: see",
		},
		"no pool is paused": {known: of(workload.State{
			Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.8", Nodes: node("v1.32.7"),
			Pools: []workload.Pool{{Name: "infra", Behind: true}},
		}), waits: "to v1.32.8 yet"},
		"cluster runs a newer version": {
			known: of(workload.State{Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.9", Nodes: node("v1.32.7")}),
			waits: "the kubelet of Node n1 has version v1.32.7, its MachineConfigPool",
		},
		"cluster is being upgraded": {known: of(workload.State{
			Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.8", APIServersVersion: "1.32.8", Upgrading: "4.19.11",
			Nodes: node("v1.32.7"),
		}), waits: "the kubelet of Node n1 has version v1.32.7"},
		"cluster is not upgraded": {
			known: of(workload.State{Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.7", Nodes: node("v1.32.7")}),
			waits: "The API servers of the cluster run v1.32.7, not v1.32.8",
		},
		"kubelet reports no version yet": {
			known: of(workload.State{Connected: true, OpenShiftVersion: "4.19.10", KubernetesVersion: "v1.32.8", Nodes: node("")}),
			waits: "the kubelet of Node n1 reports no version yet",
		},
		"cluster state unknown":   {known: of(workload.State{}), waits: "the API server of the cluster does not answer"},
		"connected without facts": {known: of(workload.State{Connected: true}), waits: "do not all run v1.32.8 yet"},
		"API down before the update": {
			known: of(workload.State{Nodes: node("v1.32.7")}),
			waits: "the API server of the cluster does not answer",
		},
		"cluster of another manager": {known: observed{}, waits: "does not reconcile cluster lab/c"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hub := newWorld(cmp.Or(test.version, "v1.32.8"), cmp.Or(test.wanted, "v1.32.8"))
			req := &hooksv1.UpdateMachineRequest{}
			req.Desired.Machine = *hub.machine.DeepCopy()
			req.Desired.Machine.Status = clusterv1.MachineStatus{} // Cluster API omits it
			resp := hub.request(t, req, test.known)
			g.Expect(resp.GetStatus()).To(Equal(hooksv1.ResponseStatusSuccess))
			if test.waits == "" {
				g.Expect(resp.GetMessage()).To(BeEmpty())
				g.Expect(resp.GetRetryAfterSeconds()).To(BeZero(), "the update is complete")
				return
			}
			g.Expect(resp.GetMessage()).To(ContainSubstring(test.waits))
			g.Expect(resp.GetRetryAfterSeconds()).To(BeNumerically(">", 0))
		})
	}
}

// Otherwise Cluster API would consider the Machine updated.
func TestReadErrorIsAFailure(t *testing.T) {
	for what, remove := range map[string]func(*world){
		"Machine m":           func(w *world) { w.machine.Name = "another" },
		"MachineSet s":        func(w *world) { w.set.Name = "another" },
		"MachineDeployment d": func(w *world) { w.deployment.Name = "another" },
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			hub := newWorld("v1.32.8", "v1.32.8")
			req := &hooksv1.UpdateMachineRequest{}
			req.Desired.Machine = *hub.machine.DeepCopy()
			remove(hub)
			resp := hub.request(t, req, observed{})
			g.Expect(resp.GetStatus()).To(Equal(hooksv1.ResponseStatusFailure))
			g.Expect(resp.GetMessage()).To(ContainSubstring("cannot read " + what))
		})
	}
}

// world is a Machine with its owners.
type world struct {
	machine    *clusterv1.Machine
	set        *clusterv1.MachineSet
	deployment *clusterv1.MachineDeployment
}

// newWorld returns a Machine with a version, and a MachineDeployment with another. "-" means none.
func newWorld(version, wanted string) *world {
	meta := func(name, kind, owner string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "lab", Name: name}
		if owner != "" {
			m.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: owner,
				UID: types.UID(owner), Controller: ptr.To(true),
			}}
		}
		return m
	}
	w := &world{
		machine: &clusterv1.Machine{
			ObjectMeta: meta("m", "MachineSet", "s"),
			Spec:       clusterv1.MachineSpec{ClusterName: "c", Version: strings.Trim(version, "-")},
		},
		set:        &clusterv1.MachineSet{ObjectMeta: meta("s", "MachineDeployment", "d")},
		deployment: &clusterv1.MachineDeployment{ObjectMeta: meta("d", "", "")},
	}
	w.machine.Status.NodeRef.Name = "n1"
	w.deployment.Spec.Template.Spec.Version = strings.Trim(wanted, "-")
	return w
}

func (w *world) request(t *testing.T, req *hooksv1.UpdateMachineRequest, workloads observed) *hooksv1.UpdateMachineResponse {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.machine, w.set, w.deployment).Build()
	resp := &hooksv1.UpdateMachineResponse{}
	(&Extension{Hub: hub, Workloads: workloads}).UpdateMachine(t.Context(), req, resp)
	return resp
}
