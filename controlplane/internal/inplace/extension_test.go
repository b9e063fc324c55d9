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

func TestCanUpdateMachineSet(t *testing.T) {
	upgraded := workload.State{Connected: true, OpenShiftVersion: "4.19.11"}
	patch := `{"spec":{"template":{"spec":{"version":"v4.19.11"}}}}`
	for name, test := range map[string]struct {
		current, wanted hooksv1.CanUpdateMachineSetRequestObjects
		known           observed
		patch, reason   string
	}{
		"newer version": {current: machineSet("v4.19.10", ours), wanted: machineSet("v4.19.11", ours), known: of(upgraded), patch: patch},
		"cluster is being upgraded": {
			current: machineSet("v4.19.10", ours), wanted: machineSet("v4.19.11", ours),
			known: of(workload.State{OpenShiftVersion: "4.19.10", Upgrading: "4.19.11"}), patch: patch,
		},
		"version removed": {
			current: machineSet("v4.19.10", ours), wanted: machineSet("", ours), known: of(upgraded),
			patch: `{"spec":{"template":{"spec":{"version":null}}}}`,
		},
		"cluster is not upgraded": {
			current: machineSet("v4.19.10", ours), wanted: machineSet("v4.19.12", ours), known: of(upgraded),
			reason: "the cluster runs 4.19.11 and is not being upgraded to v4.19.12",
		},
		"upgrade requested, not started": {
			current: machineSet("v4.19.10", ours), wanted: machineSet("v4.19.12", ours),
			known: of(workload.State{OpenShiftVersion: "4.19.11", Rollout: &workload.Rollout{
				Requested: workload.Update{Version: "4.19.12"},
				Pending:   true,
			}}), reason: "is not being upgraded",
		},
		"cluster state unknown": {
			current: machineSet("v4.19.10", ours), wanted: machineSet("v4.19.11", ours), known: of(workload.State{}),
			reason: "the release of cluster c is unknown",
		},
		"cluster of another manager": {
			current: machineSet("v4.19.10", ours), wanted: machineSet("v4.19.11", ours), known: observed{},
			reason: "does not reconcile cluster lab/c",
		},
		"same version":                 {current: machineSet("v4.19.10", ours), wanted: machineSet("v4.19.10", ours)},
		"workers of another provider":  {current: machineSet("v1.32.1", others), wanted: machineSet("v1.33.1", others)},
		"template of another provider": {current: machineSet("v4.19.10", ours), wanted: machineSet("v1.33.1", others)},
		"former template of another":   {current: machineSet("v1.33.1", others), wanted: machineSet("v4.19.10", ours)},
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
	node := func(release string) []workload.Node {
		return []workload.Node{{Name: "other", Release: "4.19.11"}, {Name: "n1", Release: release}}
	}
	for name, test := range map[string]struct {
		known observed
		// version is that of the Machine, wanted that of its MachineDeployment. The default of both is v4.19.11.
		version, wanted string
		waits           string
	}{
		"Node runs the version":     {known: of(workload.State{Connected: true, OpenShiftVersion: "4.19.11", Nodes: node("4.19.11")})},
		"Node runs a newer version": {known: of(workload.State{Connected: true, OpenShiftVersion: "4.19.12", Nodes: node("4.19.12")})},
		"API down after the update": {known: of(workload.State{OpenShiftVersion: "4.19.11", Nodes: node("4.19.11")})},
		"no version":                {version: "-", wanted: "-", known: observed{}},
		"version reverted": {wanted: "v4.19.10", known: of(workload.State{
			Connected: true, OpenShiftVersion: "4.19.10",
			Nodes: node("4.19.10"),
		})},
		"MachineDeployment is newer": {wanted: "v4.19.12", known: of(workload.State{
			Connected: true, OpenShiftVersion: "4.19.11",
			Nodes: node("4.19.10"),
		}), waits: "Node n1 runs v4.19.10"},
		"Node runs the old version": {
			known: of(workload.State{Connected: true, OpenShiftVersion: "4.19.11", Nodes: node("4.19.10")}),
			waits: "Node n1 runs v4.19.10, its MachineConfigPool has not updated it to v4.19.11 yet",
		},
		"paused pool": {
			known: of(workload.State{
				Connected: true, OpenShiftVersion: "4.19.11", Nodes: node("4.19.10"),
				Pools: []workload.Pool{
					{Name: "gpu", Degraded: "disk full"},
					{Name: "infra", Behind: true},
					{Name: "worker", Paused: true},
				},
			}),
			waits: "to v4.19.11 yet (gpu, worker paused or degraded: see",
		},
		"no pool is paused": {known: of(workload.State{
			Connected: true, OpenShiftVersion: "4.19.11", Nodes: node("4.19.10"),
			Pools: []workload.Pool{{Name: "infra", Behind: true}},
		}), waits: "to v4.19.11 yet"},
		"cluster runs a newer version": {
			known: of(workload.State{Connected: true, OpenShiftVersion: "4.19.12", Nodes: node("4.19.10")}),
			waits: "Node n1 runs v4.19.10, its MachineConfigPool",
		},
		"cluster is being upgraded": {known: of(workload.State{
			Connected: true, OpenShiftVersion: "4.19.10", Upgrading: "4.19.11",
			Nodes: node("4.19.10"),
		}), waits: "Node n1 runs v4.19.10"},
		"cluster is not upgraded": {
			known: of(workload.State{Connected: true, OpenShiftVersion: "4.19.10", Nodes: node("4.19.10")}),
			waits: "the cluster runs 4.19.10 and is not being upgraded to v4.19.11",
		},
		"release of Node not read yet": {
			known: of(workload.State{Connected: true, OpenShiftVersion: "4.19.11", Nodes: node("")}),
			waits: "reading the release of Node n1",
		},
		"cluster state unknown":   {known: of(workload.State{}), waits: "the API server of the cluster does not answer"},
		"connected without facts": {known: of(workload.State{Connected: true}), waits: "the API server of the cluster does not answer"},
		"API down before the update": {
			known: of(workload.State{OpenShiftVersion: "4.19.11", Nodes: node("4.19.10")}),
			waits: "the API server of the cluster does not answer",
		},
		"cluster of another manager": {known: observed{}, waits: "does not reconcile cluster lab/c"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hub := newWorld(cmp.Or(test.version, "v4.19.11"), cmp.Or(test.wanted, "v4.19.11"))
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
			hub := newWorld("v4.19.11", "v4.19.11")
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
