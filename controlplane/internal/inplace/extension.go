// Package inplace is a runtime extension of Cluster API (feature gates RuntimeSDK and InPlaceUpdates): it says which changes of workers need no other hosts, because OpenShift carries them out by
// itself, and when it has. Cluster API replaces the Machines of a MachineDeployment for all others.
package inplace

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// retrySeconds is how soon Cluster API asks again about a Machine that is being updated. It costs neither the hub nor the cluster a request.
const retrySeconds = 15

// Workloads observes installed clusters.
type Workloads interface {
	// View is what is known of a cluster; false when this manager looks after no such cluster: it does not lead, or its flags leave the cluster out.
	View(cluster client.ObjectKey) (facts.Workload, bool)
}

// Extension answers the questions of Cluster API.
type Extension struct {
	// Hub reads Machines, MachineSets and MachineDeployments from a cache.
	Hub client.Reader
	// Workloads tells which release their Nodes run.
	Workloads Workloads
}

// CanUpdateMachineSet says that workers of ours take another version as they are. Whatever else is different is not in the answer: failure domain, and what hosts are installed with. A failure, after
// which Cluster API asks again, is the answer where it is too early: to say no would be to replace hosts.
func (e *Extension) CanUpdateMachineSet(ctx context.Context, req *hooksv1.CanUpdateMachineSetRequest, resp *hooksv1.CanUpdateMachineSetResponse) {
	resp.SetStatus(hooksv1.ResponseStatusSuccess)
	current, wanted := &req.Current.MachineSet.Spec.Template.Spec, &req.Desired.MachineSet.Spec.Template.Spec
	switch {
	case !isOurs(current) || !isOurs(wanted):
		resp.SetMessage("these are no workers of this provider")
		return
	case current.Version == wanted.Version:
		return
	}
	cluster := client.ObjectKey{Namespace: req.Desired.MachineSet.Namespace, Name: wanted.ClusterName}
	if early := tooEarly(e.Workloads, cluster, wanted.Version); early != "" {
		ctrl.LoggerFrom(ctx).Info("Workers are not updated in place yet", "MachineSet", klog.KObj(&req.Desired.MachineSet), "Cluster", klog.KRef(cluster.Namespace, cluster.Name), "reason", early)
		resp.SetStatus(hooksv1.ResponseStatusFailure)
		resp.SetMessage(early)
		return
	}
	resp.MachineSetPatch = hooksv1.Patch{PatchType: hooksv1.JSONMergePatchType, Patch: versionPatch(wanted.Version)}
}

// tooEarly says, for people, why no worker is updated yet: a Machine that Cluster API has begun to update stays so until its Node runs the version. Empty: it can be.
func tooEarly(workloads Workloads, cluster client.ObjectKey, version string) string {
	workload, known := workloads.View(cluster)
	f := &facts.Facts{Workload: workload}
	switch {
	case !known:
		return notOurs(cluster)
	case version == "" || f.ClusterFollows(version):
		return ""
	case workload.OpenShiftVersion == "":
		return fmt.Sprintf("the API of cluster %s does not answer: which release it runs is not known", cluster.Name)
	}
	return notUpgraded(workload, version)
}

func notOurs(cluster client.ObjectKey) string {
	return fmt.Sprintf("this manager does not look after cluster %s: it does not lead, or its --namespace or --watch-filter leaves the cluster out", cluster)
}

func notUpgraded(workload facts.Workload, version string) string {
	return fmt.Sprintf("the cluster runs %s and is not being upgraded to %s: set spec.version of its control plane", workload.OpenShiftVersion, version)
}

func isOurs(spec *clusterv1.MachineSpec) bool {
	return spec.Bootstrap.ConfigRef.APIGroup == bootstrapv1.GroupVersion.Group && spec.Bootstrap.ConfigRef.Kind == facts.ConfigTemplateKind
}

// versionPatch gives a MachineSet a version, or takes it away.
func versionPatch(version string) []byte {
	var value any
	if version != "" {
		value = version
	}
	patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"version": value}}}}) //nolint:errchkjson // It cannot fail.
	return patch
}

// UpdateMachine says whether the Node of a Machine runs the version that the Machine was given. Nothing is done for it: OpenShift brings its Nodes to the release of the cluster.
func (e *Extension) UpdateMachine(ctx context.Context, req *hooksv1.UpdateMachineRequest, resp *hooksv1.UpdateMachineResponse) {
	waiting, err := e.pendingReason(ctx, client.ObjectKeyFromObject(&req.Desired.Machine), req.Desired.Machine.Spec.Version)
	if err != nil {
		resp.SetStatus(hooksv1.ResponseStatusFailure)
		resp.SetMessage(bound.Message(err.Error()))
		return
	}
	resp.SetStatus(hooksv1.ResponseStatusSuccess)
	if waiting != "" {
		resp.SetMessage(bound.Message(waiting))
		resp.SetRetryAfterSeconds(retrySeconds)
	}
}

// pendingReason says, for people, what the Node of a Machine waits for before it runs a version; empty: it runs it, or the MachineDeployment asks for another one by now, which it runs.
func (e *Extension) pendingReason(ctx context.Context, key client.ObjectKey, version string) (string, error) {
	machine := &clusterv1.Machine{}
	if err := e.Hub.Get(ctx, key, machine); err != nil {
		return "", fmt.Errorf("cannot read Machine %s: %w", key.Name, err)
	}
	wanted, err := e.wantedVersion(ctx, machine)
	if err != nil {
		return "", err
	}
	cluster := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
	workload, known := e.Workloads.View(cluster)
	f := &facts.Facts{Workload: workload}
	node, runs := machine.Status.NodeRef.Name, f.ReleaseOf(machine)
	switch {
	case version == "" || f.Follows(machine, version) || f.Follows(machine, wanted):
		return "", nil
	case !known:
		return notOurs(cluster), nil
	case !workload.Connected || workload.OpenShiftVersion == "":
		return fmt.Sprintf("the API of the cluster does not answer: which release Node %s runs is not known", node), nil
	case !f.ClusterFollows(version):
		return notUpgraded(workload, version), nil
	case runs == "":
		return fmt.Sprintf("looking which release Node %s runs", node), nil
	}
	return fmt.Sprintf("Node %s runs %s, its MachineConfigPool has not brought it to %s yet%s", node, runs, version, pausedPools(workload.Pools)), nil
}

// pausedPools names the pools that do not go on by themselves. Which of them a Node belongs to is not known here.
func pausedPools(pools []facts.Pool) string {
	var names []string
	for _, pool := range pools {
		if pool.Paused || pool.Degraded != "" {
			names = append(names, pool.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s paused or degraded: see the condition RollingOut of the control plane)", bound.List(names))
}

// wantedVersion is the version that the MachineDeployment of a Machine asks for; empty: it has none.
func (e *Extension) wantedVersion(ctx context.Context, machine *clusterv1.Machine) (string, error) {
	set, deployment := &clusterv1.MachineSet{}, &clusterv1.MachineDeployment{}
	for _, step := range []struct{ of, owner client.Object }{{machine, set}, {set, deployment}} {
		owner := metav1.GetControllerOf(step.of)
		if owner == nil {
			return "", nil
		}
		if err := e.Hub.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: owner.Name}, step.owner); err != nil {
			return "", fmt.Errorf("cannot read %s %s of Machine %s: %w", owner.Kind, owner.Name, machine.Name, err)
		}
	}
	return deployment.Spec.Template.Spec.Version, nil
}
