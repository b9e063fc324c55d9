// Package inplace is a runtime extension of Cluster API (feature gates RuntimeSDK and InPlaceUpdates). It
// reports which changes of workers need no replacement because OpenShift makes them, and when they are
// complete. For all other changes Cluster API replaces the Machines of a MachineDeployment. The extension also plans upgrades
// over several minor versions.
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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// retrySeconds is the interval at which Cluster API repeats the request for a Machine that is being updated.
// The response needs no request to the hub or the cluster.
const retrySeconds = 15

// Workloads observes installed clusters.
type Workloads interface {
	// View returns the state of a cluster. It returns false for clusters that this manager does not reconcile:
	// it is not the leader, or its flags exclude the cluster.
	View(cluster client.ObjectKey) (workload.State, bool)
}

// Extension handles the requests of Cluster API.
type Extension struct {
	// Hub reads Machines, MachineSets and MachineDeployments from a cache.
	Hub client.Reader
	// Workloads reports the versions of API servers and kubelets.
	Workloads Workloads
}

// CanUpdateMachineSet reports that our workers can change their version in place. All other differences, such
// as the failure domain or the bootstrap configuration, need a replacement. If the cluster is not being
// upgraded yet, the response is a failure, which Cluster API retries. A success without a patch would replace
// hosts.
func (e *Extension) CanUpdateMachineSet(ctx context.Context, req *hooksv1.CanUpdateMachineSetRequest,
	resp *hooksv1.CanUpdateMachineSetResponse,
) {
	resp.SetStatus(hooksv1.ResponseStatusSuccess)
	current, wanted := &req.Current.MachineSet.Spec.Template.Spec, &req.Desired.MachineSet.Spec.Template.Spec
	switch {
	case !isOurs(current) || !isOurs(wanted):
		resp.SetMessage("these workers do not belong to this provider")
		return
	case current.Version == wanted.Version:
		return
	}
	cluster := client.ObjectKey{Namespace: req.Desired.MachineSet.Namespace, Name: wanted.ClusterName}
	if reason := tooEarly(e.Workloads, cluster, wanted.Version, settingsOf(&req.Desired.MachineSet)); reason != "" {
		ctrl.LoggerFrom(ctx).Info("Workers are not updated in place yet", "MachineSet", klog.KObj(&req.Desired.MachineSet),
			"Cluster", klog.KRef(cluster.Namespace, cluster.Name), "reason", reason)
		resp.SetStatus(hooksv1.ResponseStatusFailure)
		resp.SetMessage(reason)
		return
	}
	resp.MachineSetPatch = hooksv1.Patch{PatchType: hooksv1.JSONMergePatchType, Patch: versionPatch(wanted.Version)}
}

// tooEarly describes why no worker is updated yet. Empty: workers can be updated. The check is necessary
// because a Machine that Cluster API has started to update stays in that state until its Node runs the
// version.
func tooEarly(workloads Workloads, cluster client.ObjectKey, version string, settings openshift.Settings) string {
	state, known := workloads.View(cluster)
	switch {
	case !known:
		return notOurs(cluster)
	case version == "" || versions.AtLeast(state.Kubernetes(), version):
		return ""
	case !state.Connected:
		return fmt.Sprintf("the Kubernetes version of cluster %s is unknown: its API server does not answer", cluster.Name)
	}
	return notUpgraded(&state, version, settings)
}

func notOurs(cluster client.ObjectKey) string {
	return fmt.Sprintf("this manager does not reconcile cluster %s: it is not the leader, or its --namespace or --watch-filter "+
		"excludes the cluster", cluster)
}

func notUpgraded(state *workload.State, version string, settings openshift.Settings) string {
	if versions.IsRelease(version) {
		return version + " is a release of OpenShift: set the Kubernetes version of the release in the MachineDeployment"
	}
	runs := "The API servers of the cluster do not all run " + version + " yet"
	if kubernetes := state.Kubernetes(); kubernetes != "" {
		runs = fmt.Sprintf("The API servers of the cluster run %s, not %s", kubernetes, version)
	}
	return fmt.Sprintf("%s. If the cluster is not being upgraded, set %s of its control plane to a release with "+
		"Kubernetes %s", runs, settings.Release, version)
}

// settingsOf returns the settings of the control plane of a worker, or of a MachineSet.
func settingsOf(worker client.Object) openshift.Settings {
	return openshift.SettingsOf(facts.InTopology(worker))
}

func isOurs(spec *clusterv1.MachineSpec) bool {
	return spec.Bootstrap.ConfigRef.APIGroup == bootstrapv1.GroupVersion.Group &&
		spec.Bootstrap.ConfigRef.Kind == workers.ConfigTemplateKind
}

// versionPatch returns the patch that sets or removes the version of a MachineSet.
func versionPatch(version string) []byte {
	var value any
	if version != "" {
		value = version
	}
	spec := map[string]any{"version": value}
	template := map[string]any{"spec": spec}
	patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": template}}) //nolint:errchkjson // cannot fail
	return patch
}

// UpdateMachine reports whether the kubelet of a Machine has the version of the Machine, or a newer one. It starts nothing:
// OpenShift updates Nodes to the release of the cluster.
func (e *Extension) UpdateMachine(ctx context.Context, req *hooksv1.UpdateMachineRequest, resp *hooksv1.UpdateMachineResponse) {
	pending, err := e.pendingReason(ctx, &req.Desired.Machine)
	if err != nil {
		resp.SetStatus(hooksv1.ResponseStatusFailure)
		resp.SetMessage(bound.Message(err.Error()))
		return
	}
	resp.SetStatus(hooksv1.ResponseStatusSuccess)
	if pending != "" {
		resp.SetMessage(bound.Message(pending))
		resp.SetRetryAfterSeconds(retrySeconds)
	}
}

// pendingReason describes why the Node of a Machine does not run the desired version yet. It is empty if the Node runs
// that version, or another one that the MachineDeployment now specifies.
func (e *Extension) pendingReason(ctx context.Context, desired *clusterv1.Machine) (string, error) {
	key, version, machine := client.ObjectKeyFromObject(desired), desired.Spec.Version, &clusterv1.Machine{}
	if err := e.Hub.Get(ctx, key, machine); err != nil {
		return "", fmt.Errorf("cannot read Machine %s: %w", key.Name, err)
	}
	wanted, err := e.wantedVersion(ctx, machine)
	if err != nil {
		return "", err
	}
	cluster := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
	state, known := e.Workloads.View(cluster)
	f := &facts.Facts{Workload: state}
	node, runs := machine.Status.NodeRef.Name, versioning.KubeletVersion(f, machine)
	switch {
	case version == "" || versioning.Follows(f, machine, version) || versioning.Follows(f, machine, wanted):
		return "", nil
	case !known:
		return notOurs(cluster), nil
	case !state.Connected:
		return fmt.Sprintf("the version of the kubelet of Node %s is unknown: the API server of the cluster does not answer", node), nil
	case !versions.AtLeast(state.Kubernetes(), version):
		return notUpgraded(&state, version, settingsOf(desired)), nil
	case runs == "":
		return fmt.Sprintf("the kubelet of Node %s reports no version yet", node), nil
	}
	return fmt.Sprintf("the kubelet of Node %s has version %s, its MachineConfigPool has not updated it to %s yet%s", node, runs, version,
		pausedPools(state.Pools)), nil
}

// pausedPools names the pools that are paused or degraded. The pool of a Node is not known here.
func pausedPools(pools []workload.Pool) string {
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

// wantedVersion returns the version that the MachineDeployment of a Machine specifies, or "".
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
